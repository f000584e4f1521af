"""Suggestions in Helix's completion menu."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

pytest.importorskip("pyte", reason="pyte is not installed; `make test-clients` brings it.")

from tests.e2e.cases import ADD, CALL, DEDENTED, MONEY, PARTED, SWALLOWED
from tests.e2e.clients.conftest import taken
from tests.e2e.clients.install import helix
from tests.e2e.clients.screen import Terminal, terminal
from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.engine.processes import Home, wait_until

pytestmark = pytest.mark.skipif(
    not helix().is_file(), reason="Helix is not installed; `make test-clients` brings it, on Debian."
)

LANGUAGES = f"""
[language-server.dg]
command = {json.dumps(SERVE[0])}
args = {json.dumps(SERVE[1:])}
config = {{ inline = {{ deadline_ms = {PATIENT["inline"]["deadline_ms"]} }} }}

[[language]]
name = "python"
language-servers = ["dg"]
"""
ESCAPE, ASK, NEXT = "\x1b", "\x18", "\x0e"


@pytest.mark.parametrize("case", [ADD, CALL, MONEY, PARTED, DEDENTED, SWALLOWED])
def test_a_suggestion_is_shown_and_taken(tmp_path: Path, shared: Home, case: str):
    before, answer, after = case.split("▮")
    if after.startswith(")"):
        answer = answer.removesuffix(")")
    config = tmp_path / "config" / "helix"
    config.mkdir(parents=True)
    (config / "languages.toml").write_text(LANGUAGES)
    file = tmp_path / "file.py"
    file.write_text(before + after)
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    environment = {
        **shared.environment,
        "TERM": "xterm-256color",
        "HELIX_RUNTIME": str(helix().parent / "runtime"),
        **{f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "STATE", "CACHE")},
    }
    with terminal([helix(), f"{file}:{line}:{column}"], tmp_path, environment) as screen:
        first = answer.split("\n")[0]
        wait_until(lambda: " NOR " in screen.text, "Helix")
        screen.type("i")
        wait_until(lambda: " INS " in screen.text, "insert mode")
        wait_until(lambda: _shows(screen, first), f"{first!r} in the menu")
        screen.type(NEXT)
        # It shows in the text what is selected in the menu.
        wait_until(lambda: f"{before}{answer}".rpartition("\n")[2] in screen.text, "the suggestion in the text")
        screen.type("\r")
        # The end of the item's detail: the menu is closed.
        wait_until(lambda: "Filled in by" not in screen.text, "the menu to close")
        screen.type(ESCAPE)
        wait_until(lambda: " NOR " in screen.text, "normal mode")
        screen.type(":w\r")
        # It moves the old file away before it writes the new one.
        wait_until(lambda: file.is_file() and file.read_text() == taken(case), f"{taken(case)!r} in the file")


def _shows(screen: Terminal, label: str) -> bool:
    """Ask for the menu; whether it opens soon. Asking again takes back what was asked before."""
    screen.type(ASK)
    ends_s = time.monotonic() + 3
    while time.monotonic() < ends_s:
        if label in screen.text:
            return True
    return False
