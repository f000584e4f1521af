"""What a person's terminal gets to see of names and texts that somebody else chose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="terminals of Unix")

CLEAR = "\x1b[2J"
OVERRIDE = "\N{RIGHT-TO-LEFT OVERRIDE}"
NAMES = {f"a{CLEAR}.py": r"a\x1b[2J.py", f"b{OVERRIDE}yp.py": r"b\u202eyp.py", "c\nd.py": r"c\x0ad.py"}


def on_terminal(*arguments: str, cwd: Path) -> str:
    """All that a command writes to one."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "dg_lsp", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb"},
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 65536):
                said += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        process.wait(60)
    return said.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).write_text(f"x = f(1  # {CLEAR}{OVERRIDE}\n")
    return tmp_path


def test_files_are_listed_as_they_are_read_and_to_programs_as_they_are(folder: Path):
    assert on_terminal("files", cwd=folder).splitlines() == list(NAMES.values())
    piped = subprocess.run([sys.executable, "-m", "dg_lsp", "files"], cwd=folder, capture_output=True, check=True)
    assert piped.stdout.decode() == "".join(f"{name}\n" for name in NAMES)


@pytest.mark.parametrize("name", NAMES, ids=["an escape", "a mark of direction", "a line feed"])
def test_errors_and_diffs_show_what_a_name_holds(folder: Path, name: str):
    gone = on_terminal("fill", f"gone-{name}", "--at", "1:1", cwd=folder)
    diff = on_terminal("fix", name, "--no-engine", "--model", "oracle:/none.json", cwd=folder)
    for said in (gone, diff):
        assert said.strip()
        assert not {"\x1b", OVERRIDE} & {*said}


def test_a_diff_shows_what_lines_hold(folder: Path):
    from engine.cli.source import difference
    from engine.common.terminal import shown
    from engine.common.textfile import read_text

    source = read_text(folder / next(iter(NAMES)))
    said = shown(difference(source, source.text.replace("1", "1)")))
    assert "\\x1b[2J\\u202e" in said
    assert not {"\x1b", OVERRIDE} & {*said}
    assert said.count("\n") == difference(source, source.text.replace("1", "1)")).count("\n")
