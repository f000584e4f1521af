"""Next edits in clients of Copilot's language server: sidekick.nvim and copilot-lsp."""

from __future__ import annotations

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-clients` brings it.")

from tests.e2e.clients.checkouts import checkouts
from tests.e2e.clients.neovim import server
from tests.e2e.editors.conftest import PATIENT, SERVE, neovim_program
from tests.e2e.editors.lua import as_lua
from tests.e2e.editors.neovim import Neovim, neovim_with
from tests.e2e.test_copilot_clients import OLD
from tests.engine.processes import Home, wait_until

NEW = OLD.replace("size", "width")
SETTINGS = {"dg-lsp": PATIENT}


def renamed(editor: Neovim) -> None:
    """Write another name at the first of its places, and leave insert mode."""
    editor.open(OLD.replace("size", "▮size", 1), insert=False)
    editor.ready()
    editor.input("ciwwidth<Esc>")


def test_sidekick_shows_a_next_edit_jumps_and_takes_it(shared: Home):
    lua = "require('sidekick').setup({})\n" + server("dg-copilot", settings=SETTINGS)
    with neovim_with(neovim_program("0.12"), shared, checkouts("sidekick.nvim"), lua, "dg-copilot") as editor:
        renamed(editor)
        wait_until(lambda: editor.lua("return require('sidekick.nes').have()"), "a next edit")
        assert editor.lua("return require('sidekick').nes_jump_or_apply()")
        wait_until(lambda: editor.lua("return vim.api.nvim_win_get_cursor(0)[1]") == 2, "the jump")
        assert editor.lua("return require('sidekick').nes_jump_or_apply()")
        wait_until(lambda: editor.text == NEW, f"the edit in {editor.text!r}")


@pytest.mark.parametrize("version", ["0.12", "0.11"])
def test_copilot_lsp_shows_a_next_edit_jumps_and_takes_it(shared: Home, version: str):
    lua = (
        "vim.g.copilot_nes_debounce = 50\n"
        f"vim.lsp.config('copilot_ls', {{ cmd = {as_lua(SERVE)}, settings = {as_lua(SETTINGS)} }})\n"
        "vim.lsp.enable('copilot_ls')\n"
    )
    with neovim_with(neovim_program(version), shared, checkouts("copilot-lsp"), lua, "copilot_ls") as editor:
        renamed(editor)
        wait_until(lambda: editor.lua("return vim.b.nes_state ~= nil"), "a next edit")
        assert editor.lua("return require('copilot-lsp.nes').walk_cursor_start_edit()")
        wait_until(lambda: editor.lua("return vim.api.nvim_win_get_cursor(0)[1]") == 2, "the jump")
        assert editor.lua("return require('copilot-lsp.nes').apply_pending_nes()")
        wait_until(lambda: editor.text == NEW, f"the edit in {editor.text!r}")
