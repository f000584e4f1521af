"""The languages that can be checked, and their names: LSP ids, file names, shebangs. Grammars are separate wheels that
are imported at first use."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath

from msgspec import convert
from msgspec.json import decode
from tree_sitter import Language

_PROGRAM = re.compile(r"[A-Za-z][A-Za-z+_-]*")
_SHEBANG_CHARS = 256
"""Characters of a shebang; Linux reads as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A language, the package of its grammar, and its names, separated by blanks."""

    name: str
    package: str = ""
    """`tree_sitter_NAME` if empty."""
    function: str = "language"
    aliases: str = ""
    """Identifiers that editors send, beside `name`."""
    extensions: str = ""
    """Endings of file names, lower case, without the dot."""
    filenames: str = ""
    interpreters: str = ""
    """Programs of a shebang, without version digits."""
    keywords: str = ""
    """Words that are never names; those with a meaning only in some places are left out."""
    ends: str = ""
    """Words that end a block."""
    lexes: str = ""
    """Its strings and comments, as `lexing` names them; empty: its brackets need not pair."""
    tails: tuple[str, ...] = ()
    """Text that may complete unfinished code after a gap; here and below in the notation of `continuations`."""
    standins: tuple[str, ...] = ("", "x")
    quotes: tuple[str, ...] = ('"', "'", "*/")
    headers: tuple[str, ...] = ()
    """Text that may precede an opening bracket at the end of a line that lacks its head."""


def _types(names: str) -> frozenset[str]:
    return frozenset(names.split())


ARGUMENTS = _types("argument_list arguments annotation_argument_list attribute_argument_list bracketed_argument_list")
"""Nodes that are bracketed arguments of a call, in all grammars; the names do not clash."""
BLOCKS = _types(
    """
    block statement_block compound_statement declaration_list field_declaration_list class_body constructor_body
    interface_body enum_body annotation_type_body module_body body_statement block_body match_block switch_body
    switch_block enum_declaration_list enum_member_declaration_list enum_variant_list enumerator_list
    keyframe_block_list heredoc_body object array table element fenced_code_block
    """
)
"""Types of nodes that are bodies, with their braces where the language has some."""
_FILE = Path(__file__).with_suffix(".json")
GRAMMARS = {name: convert({"name": name, **about}, Grammar) for name, about in decode(_FILE.read_bytes()).items()}
_PYTHON = GRAMMARS["python"]
# As a notebook's cell holds it, where `await` may stand outside of functions.
GRAMMARS["ipython"] = replace(
    _PYTHON,
    name="ipython",
    package="tree_sitter_python",
    aliases="",
    extensions="ipy",
    filenames="",
    interpreters="ipython",
)
PYTHON = frozenset({"python", "ipython"})
"""Languages that Python's compiler reads."""
_BY_ALIAS = {alias: each.name for each in GRAMMARS.values() for alias in (each.name, *each.aliases.split())}
_BY_EXTENSION = {ending: each.name for each in GRAMMARS.values() for ending in each.extensions.split()}
_BY_FILENAME = {name: each.name for each in GRAMMARS.values() for name in each.filenames.split()}
_BY_INTERPRETER = {program: each.name for each in GRAMMARS.values() for program in each.interpreters.split()}


def language_of(identifier: str = "", path: str = "", first_line: str = "") -> str | None:
    """The name (`Grammar.name`) of a language by an editor's identifier, by file name or by shebang, in this order;
    None: unknown."""
    name = PurePath(path.replace("\\", "/")).name
    return (
        _BY_ALIAS.get(identifier.strip().lower())
        or _BY_FILENAME.get(name)
        or _BY_EXTENSION.get(name.rpartition(".")[2].lower() if "." in name else "")
        or _BY_INTERPRETER.get(_interpreter(first_line[:_SHEBANG_CHARS]))
    )


def _interpreter(line: str) -> str:
    """The program in a shebang without its version; empty where the line is none."""
    if not line.startswith("#!"):
        return ""
    programs = [word.rpartition("/")[2] for word in line[2:].split() if not word.startswith("-")]
    named = _PROGRAM.match(next(iter(programs[programs[:1] == ["env"] :]), ""))
    return named[0].lower() if named else ""


@cache
def load(name: str) -> Language | None:
    """The grammar of a language; None where there is none or the installed one can't be used."""
    grammar = GRAMMARS.get(name)
    if grammar is None:
        return None
    try:
        capsule: object = getattr(import_module(grammar.package or f"tree_sitter_{name}"), grammar.function)()
        return Language(capsule)
    except (ImportError, AttributeError, ValueError):
        return None
