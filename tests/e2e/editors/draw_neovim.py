"""Pictures of Neovim at work, from a real run in a terminal: `python -m tests.e2e.editors.draw_neovim FOLDER`.

Its answers are the test oracle's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from tests.e2e.cases import BODY
from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.e2e.editors.edit_cases import BY_TWO, EDITS
from tests.e2e.editors.install.neovim import NEWEST, program
from tests.e2e.editors.lua import as_lua
from tests.e2e.editors.moving import drawn, moving
from tests.e2e.editors.neovim import PLUGIN
from tests.engine.processes import WAIT_S, Home, home, running, wait_until

WIDTH, HEIGHT = 84, 14
LONGEST_S = 1.5
"""No frame of the moving picture stays for longer, and none that somebody should read for less."""


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
        svg = drawn(self.screen(colours=True), width=WIDTH, height=HEIGHT, title=title)
        path.write_text(svg, encoding="utf-8")

    @contextmanager
    def recorded(self, path: Path, title: str) -> Iterator[None]:
        """What the screen shows meanwhile, as a moving picture; what is no change takes no time."""
        frames: list[tuple[float, str]] = []
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.1):
                screen = self.screen(colours=True)
                if not frames or screen != frames[-1][1]:
                    frames.append((time.monotonic(), screen))

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()
        path.write_text(moving(_hurried(frames), width=WIDTH, height=HEIGHT, title=title), encoding="utf-8")

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        return subprocess.run(
            ["tmux", "-L", self._name, *arguments], env=self._environment, check=True, capture_output=True, text=True
        ).stdout


def draw(place: Home, into: Path) -> None:
    """Two pictures, and a moving one of all."""
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
        "vim.cmd.highlight('Normal guibg=NONE')\n"
        "vim.o.background, vim.o.showmode, vim.o.shadafile = 'dark', false, 'NONE'\n"
        f"require('dg').setup({as_lua(options)})\n"
    )
    terminal = Terminal([str(program(NEWEST)), "--clean", "-u", str(init), "total.py"], place.environment, work)
    try:
        terminal.shows("total.py")
        # Started with a file, so the model is loaded by the time that somebody types.
        wait_until(lambda: "dg -" not in terminal.screen() and "dg …" not in terminal.screen(), "the model", 3 * WAIT_S)
        with terminal.recorded(into / "neovim.svg", "Neovim with dg-lsp"):
            _ghost_text(terminal, into)
            _rewrite(terminal, into)
    finally:
        terminal.close()


def _hurried(frames: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """A busy machine's pauses are of no interest."""
    at, hurried = 0.0, [(0.0, frames[0][1])]
    for (before, _), (now, screen) in pairwise(frames):
        at += min(now - before, LONGEST_S)
        hurried.append((at, screen))
    return hurried


def _ghost_text(terminal: Terminal, into: Path) -> None:
    terminal.type("i", "def total", "(items):", "Enter")
    terminal.shows("for item in items:")
    time.sleep(LONGEST_S)
    terminal.draw(into / "neovim-ghost-text.svg", "Neovim: what stands behind the cursor is suggested")
    terminal.type("Tab")
    time.sleep(LONGEST_S)


def _rewrite(terminal: Terminal, into: Path) -> None:
    terminal.type("Escape", ":edit! growth.py", "Enter")
    terminal.shows("# Growth.")
    time.sleep(LONGEST_S)
    terminal.type(":3Dg rewrite", " by two")
    time.sleep(LONGEST_S)
    terminal.type("Enter")
    terminal.shows("size += 2")
    time.sleep(LONGEST_S)
    terminal.draw(into / "neovim-rewrite.svg", "Neovim: `:3Dg rewrite by two` proposes an edit")
    terminal.type("Enter")
    time.sleep(LONGEST_S)


def main() -> None:
    """Draw into the folder that is named."""
    into = Path(sys.argv[1])
    into.mkdir(parents=True, exist_ok=True)
    with home() as place, running(place, "--model", place.oracle(BODY, *EDITS)):
        draw(place, into)


if __name__ == "__main__":
    main()
