"""Pictures of Neovim at work, from a real run in a terminal: `python -m tests.e2e.editors.draw_neovim FOLDER`.

Its answers are the test oracle's.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.e2e.cases import BODY
from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.e2e.editors.edit_cases import BY_TWO, EDITS
from tests.e2e.editors.install.neovim import NEWEST, program
from tests.e2e.editors.lua import as_lua
from tests.e2e.editors.neovim import PLUGIN
from tests.engine.processes import WAIT_S, Home, home, running, wait_until

WIDTH, HEIGHT = 84, 14


class Terminal:
    """A terminal of its own, in which a program runs."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._name = f"dg-{os.getpid()}"
        self._environment = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(folder), *command)
        self._tmux("set", "-g", "status", "off")
        self._tmux("set", "-as", "terminal-features", ",*:RGB")

    def type(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def screen(self, *, colours: bool = False) -> str:
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def shows(self, part: str) -> None:
        """Wait for a text on the screen."""
        wait_until(lambda: part in self.screen(), f"{part!r} on the screen", 3 * WAIT_S)

    def draw(self, path: Path, title: str) -> None:
        """The screen as an SVG."""
        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi(self.screen(colours=True).rstrip("\n")))
        path.write_text(console.export_svg(title=title), encoding="utf-8")

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        return subprocess.run(
            ["tmux", "-L", self._name, *arguments], env=self._environment, check=True, capture_output=True, text=True
        ).stdout


def draw(place: Home, into: Path) -> None:
    """Both pictures."""
    work = place.folder / "work"
    work.mkdir()
    (work / "growth.py").write_text(BY_TWO.replace("size += 2", "size = size + 1"))
    (work / "total.py").write_text("")
    init = work / "init.lua"
    options = {"cmd": SERVE, "settings": PATIENT, "keys": True}
    init.write_text(
        f"vim.opt.runtimepath:append({as_lua(str(PLUGIN))})\n"
        "vim.o.termguicolors, vim.o.number, vim.o.swapfile, vim.o.laststatus = true, true, false, 2\n"
        "vim.o.statusline = \" %f %= %{%v:lua.require'dg'.statusline()%} \"\n"
        "vim.o.background, vim.o.showmode, vim.o.shadafile = 'dark', false, 'NONE'\n"
        f"require('dg').setup({as_lua(options)})\n"
    )
    terminal = Terminal([str(program(NEWEST)), "--clean", "-u", str(init), "total.py"], place.environment, work)
    try:
        _ghost_text(terminal, into)
        _rewrite(terminal, into)
    finally:
        terminal.close()


def _ghost_text(terminal: Terminal, into: Path) -> None:
    terminal.shows("total.py")
    terminal.type("i", "def total(items):", "Enter")
    terminal.shows("for item in items:")
    terminal.type("-l", "result")
    terminal.shows("for item in items:")
    terminal.draw(into / "neovim-ghost-text.svg", "Neovim: what stands behind the cursor is suggested")


def _rewrite(terminal: Terminal, into: Path) -> None:
    terminal.type("Escape", ":edit! growth.py", "Enter")
    terminal.shows("# Growth.")
    terminal.type(":3Dg rewrite by two", "Enter")
    terminal.shows("size += 2")
    terminal.draw(into / "neovim-rewrite.svg", "Neovim: `:3Dg rewrite by two` proposes an edit")


def main() -> None:
    """Draw into the folder that is named."""
    into = Path(sys.argv[1])
    into.mkdir(parents=True, exist_ok=True)
    with home() as place, running(place, "--model", place.oracle(BODY, *EDITS)):
        draw(place, into)


if __name__ == "__main__":
    main()
