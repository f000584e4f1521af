"""A real Neovim, with the plugin of this repository or others, driven as a person would."""

from __future__ import annotations

import contextlib
import gc
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pynvim

from tests.e2e.editors.lua import as_lua
from tests.engine.processes import WAIT_S, Home, wait_until

PLUGIN = Path(__file__).parents[3] / "editors" / "nvim"
MINE = ("nvim.lsp.inline_completion", "dg.ghost", "dg.preview", "dg.working")
_GHOST = """
local shown = {}
for _, name in ipairs({ ... }) do
  local namespace = vim.api.nvim_get_namespaces()[name]
  for _, mark in ipairs(namespace and vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true }) or {}) do
    local lines = { mark[4].virt_text or {}, unpack(mark[4].virt_lines or {}) }
    for index, line in ipairs(lines) do
      lines[index] = table.concat(vim.tbl_map(function(chunk)
        return (chunk[2] == "ComplHintMore" or chunk[2] == "DgHint") and "" or chunk[1]
      end, line))
    end
    shown[#shown + 1] = { mark[2], mark[3], table.concat(lines, "\\n"), mark[4].end_row or mark[2] }
  end
end
return shown
"""
_STATUS = """
local name, engine = ...
local client = vim.lsp.get_clients({ name = name })[1]
local answer = client and client:request_sync("dg/status", {
  uri = vim.uri_from_bufnr(0), engine = engine,
}, 20000)
return answer and answer.result or vim.NIL
"""


class Neovim:
    """One running editor. `messages` are what it told the user, `client` is what it calls our server."""

    def __init__(self, nvim: Any, folder: Path, client: str) -> None:
        self.nvim = nvim
        self.folder = folder
        self.client = client

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.nvim.exec_lua(code, *arguments)

    def input(self, keys: str) -> None:
        self.nvim.input(keys)

    def command(self, command: str) -> None:
        self.nvim.command(command)

    @property
    def messages(self) -> list[str]:
        return self.lua("return _G.told")

    @property
    def text(self) -> str:
        return "\n".join(self.nvim.current.buffer[:]) + "\n"

    def open(self, marked: str, name: str = "file.py", *, insert: bool = True) -> None:
        """Open a file with a cursor at the first ▮; what stands up to a second one is left out."""
        before, _, rest = marked.partition("▮")
        after = rest.partition("▮")[2] if "▮" in rest else rest
        path = self.folder / name
        path.write_text(before + after, encoding="utf-8")
        self.command(f"edit! {path}")
        line = before.count("\n") + 1
        column = len(before.rpartition("\n")[2].encode())
        self.lua("vim.api.nvim_win_set_cursor(0, { ... })", line, column)
        if insert:
            at_end = not after or after.startswith("\n")
            self.input("a" if at_end and column else "i")

    def attached(self) -> None:
        """Wait until the server serves this buffer."""
        ready = "local c = vim.lsp.get_clients({ name = ..., bufnr = 0 })[1] return c ~= nil and c.initialized == true"
        wait_until(lambda: self.lua(ready, self.client), "the server to serve the buffer")

    def ready(self) -> None:
        """Wait until the model is loaded."""
        self.attached()
        # Starting an engine takes as long as importing torch does.
        wait_until(lambda: (told := self.status())["state"] == "ready" and not told["message"], "the model", 2 * WAIT_S)

    def marks(self, *namespaces: str) -> list[tuple[int, int, str, int]]:
        return [tuple(mark) for mark in self.lua(_GHOST, *namespaces)]

    def ghost(self) -> str:
        """What is shown behind the cursor; empty for nothing."""
        return "".join(text for _, _, text, _ in self.marks(*MINE[:2]))

    def sees(self, text: str) -> None:
        """Wait for ghost text."""
        wait_until(lambda: self.ghost() == text, f"the ghost text {text!r}, not {self.ghost()!r}")

    def status(self, *, engine: bool = False) -> dict[str, Any]:
        return self.lua(_STATUS, self.client, engine) or {"state": "none", "message": ""}

    def told(self, part: str) -> str:
        """Wait until the user is told a sentence with this part."""
        return wait_until(
            lambda: next((message for message in self.messages if part in message), ""),
            f"a message with {part!r} among {self.messages}",
        )

    def quit(self, process: subprocess.Popen[bytes]) -> None:
        """Type `:qall!` until the editor's process ends: keys get through in every mode and at every prompt."""

        def ended() -> bool:
            with contextlib.suppress(OSError, EOFError):
                self.nvim.input("<C-\\><C-n>:qall!<CR>")
            return process.poll() is not None

        wait_until(ended, "Neovim to end")
        self.nvim.close()
        # pynvim leaves its socket to the garbage collector, which would complain in the middle of another test.
        del self.nvim
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    def server_pid(self) -> int:
        """The language server's process."""
        children = subprocess.run(
            ["pgrep", "-P", str(self.lua("return vim.fn.getpid()")), "-f", "dg_lsp"],
            capture_output=True,
            text=True,
            check=False,
        )
        return int(children.stdout.split()[0])


def neovim(program: Path, home: Home, **options: Any) -> AbstractContextManager[Neovim]:
    """A Neovim from start to end, with these options of our plugin."""
    return neovim_with(program, home, [PLUGIN], f"require('dg').setup({as_lua(options)})\n")


@contextmanager
def neovim_with(program: Path, home: Home, plugins: Sequence[Path], lua: str, client: str = "dg") -> Iterator[Neovim]:
    """A Neovim from start to end, with these plugins and this at the end of its configuration; it leaves no process
    behind."""
    folder = Path(tempfile.mkdtemp(prefix="dg-nvim-"))
    (folder / "work").mkdir()
    init = folder / "init.lua"
    init.write_text(
        "".join(f"vim.opt.runtimepath:append({as_lua(str(plugin))})\n" for plugin in plugins)
        + "vim.o.swapfile, vim.o.undofile, vim.o.shadafile = false, false, 'NONE'\n"
        "_G.told = {}\n"
        "vim.notify = function(message) table.insert(_G.told, message) end\n" + lua
    )
    environment = {
        **home.environment,
        **{f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
    }
    address = folder / "socket"
    process = subprocess.Popen(
        [str(program), "--headless", "--listen", str(address), "--clean", "-n", "-u", str(init)],
        cwd=folder / "work",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _listens(address), "Neovim to listen")
        nvim = pynvim.attach("socket", path=str(address))
        nvim.ui_attach(100, 30, rgb=True)
        held = Neovim(nvim, folder / "work", client)
        del nvim
        try:
            yield held
        finally:
            held.quit(process)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as held:
        return held.connect_ex(str(path)) == 0
