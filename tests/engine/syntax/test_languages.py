"""Languages by what editors, file names and shebangs call them; grammars that parse."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.syntax.languages import GRAMMARS, language_of, load
from engine.syntax.tree import parsed

CASES = Path(__file__).parents[2] / "cases" / "syntax"


@pytest.mark.parametrize("language", GRAMMARS)
def test_every_language_has_a_grammar_that_parses_a_file(language):
    file = next(path for path in CASES.iterdir() if language_of(path=path.name) == language)
    tree = parsed(file.read_text(encoding="utf-8"), language)
    assert tree is not None
    assert not tree.root.has_error
    assert tree.root.named_child_count > 0


@pytest.mark.parametrize(
    ("identifier", "language"),
    [
        ("python", "python"),
        ("javascriptreact", "javascript"),
        ("typescriptreact", "tsx"),
        ("shellscript", "bash"),
        ("sh", "bash"),
        ("csharp", "csharp"),
        ("cs", "csharp"),
        ("jsonc", "json"),
        ("Rust", "rust"),
        ("klingon", None),
        ("", None),
    ],
)
def test_identifiers_of_editors(identifier, language):
    assert language_of(identifier) == language


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("/a/b.py", "python"),
        ("stubs.pyi", "python"),
        ("C:\\code\\Main.TSX", "tsx"),
        ("Gemfile", "ruby"),
        (".bashrc", "bash"),
        ("Cargo.lock", "toml"),
        ("archive.tar.gz", None),
        ("README", None),
        ("c", None),
    ],
)
def test_file_names(path, language):
    assert language_of(path=path) == language


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("#!/usr/bin/env python3", "python"),
        ("#!/usr/bin/env -S python3.12 -u", "python"),
        ("#! /bin/bash", "bash"),
        ("#!/usr/bin/env -i -S ruby -w", "ruby"),
        ("#!/usr/bin/env -", None),
        ("#!", None),
        ("#!/usr/local/bin/node", "javascript"),
        ("#!/usr/bin/awk -f", None),
        ("# not a shebang", None),
    ],
)
def test_shebangs(line, language):
    assert language_of(first_line=line) == language


@pytest.mark.processor_s(10)
@pytest.mark.parametrize("path", ["/" * 1_000_000, "a/" * 500_000 + "env ", " " * 1_000_000, "/env " * 200_000])
def test_a_line_of_any_length_is_no_work(path):
    assert language_of(first_line=f"#!{path}1") is None


def test_what_the_editor_says_comes_first():
    assert language_of("lua", "a.py", "#!/bin/sh") == "lua"
    assert language_of("klingon", "a.py", "#!/bin/sh") == "python"


def test_an_unknown_language_has_no_grammar():
    assert load("klingon") is None
    assert parsed("nuqneH", "klingon") is None


def test_a_grammar_is_imported_when_it_is_needed():
    code = (
        "import sys, engine.syntax.validator as validator\n"
        "validator.Validator('x = ', '', 'python').verdict('1')\n"
        "print(sorted(name for name in sys.modules if name.startswith('tree_sitter_') and '.' not in name))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "['tree_sitter_python']"
