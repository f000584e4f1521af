"""Suggestions in the completion menu: Neovim's own, blink.cmp's and nvim-cmp's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-clients` brings it.")

from tests.e2e.cases import ADD, CALL, DEDENTED, MONEY, PARTED, SWALLOWED
from tests.e2e.clients.checkouts import checkouts
from tests.e2e.clients.conftest import taken
from tests.e2e.clients.neovim import in_menu, server
from tests.e2e.editors.conftest import PATIENT, neovim_program
from tests.e2e.editors.neovim import Neovim, neovim_with
from tests.engine.processes import Home, wait_until

OWN = """
vim.o.completeopt = "menuone,noselect"
vim.api.nvim_create_autocmd("LspAttach", {
  callback = function(event) vim.lsp.completion.enable(true, event.data.client_id, event.buf) end,
})
"""
BLINK = """
require("blink.cmp").setup({
  fuzzy = { implementation = "lua" },
  completion = { menu = { auto_show = false } },
  sources = { default = { "lsp" } },
})
"""
CMP = """
require("cmp_nvim_lsp").setup()
local cmp = require("cmp")
cmp.setup({ completion = { autocomplete = false }, sources = { { name = "nvim_lsp" } } })
vim.lsp.config("*", { capabilities = require("cmp_nvim_lsp").default_capabilities() })
"""
MENUS: dict[str, dict[str, Any]] = {
    "Neovim's own": {
        "plugins": [],
        "lua": OWN,
        "ask": "vim.lsp.completion.get()",
        "shown": "return vim.fn.pumvisible() == 1 and vim.fn.complete_info({ 'items' }).items[1].abbr or ''",
        "take": "<C-n><C-y>",
    },
    "blink.cmp": {
        "plugins": ["blink.cmp"],
        "lua": BLINK,
        "ask": "require('blink.cmp').show()",
        "shown": "return require('blink.cmp').is_menu_visible() and require('blink.cmp').get_items()[1].label or ''",
        "take": "<C-y>",
    },
    "nvim-cmp": {
        "plugins": ["nvim-cmp", "cmp-nvim-lsp"],
        "lua": CMP,
        "ask": "require('cmp').complete()",
        "shown": "return require('cmp').visible() and require('cmp').get_entries()[1].completion_item.label or ''",
        "take": "<Cmd>lua require('cmp').confirm({ select = true })<CR>",
    },
}
EVERYWHERE = [(menu, version) for menu in MENUS for version in ("0.12", "0.11")]


class Menu:
    """The completion menu of one editor."""

    def __init__(self, editor: Neovim, menu: dict[str, Any]) -> None:
        self.editor = editor
        self.menu = menu
        self.is_neovims = not menu["plugins"]

    def shown(self) -> str:
        """Ask for the menu unless it is open; what its first item is called."""
        found = self.editor.lua(self.menu["shown"])
        if not found:
            self.editor.lua(self.menu["ask"])
            found = wait_until(lambda: self.editor.lua(self.menu["shown"]), "the menu", 5)
        return found

    def take(self, marked: str, result: str) -> None:
        """Take the one suggestion at the first ▮; `result` is what is to stand there then."""
        self.editor.open(marked)
        self.editor.ready()
        # nvim-cmp looks for servers where the insert mode begins.
        self.editor.input("<Esc>gi")
        wait_until(self.shown, "the menu")
        self.editor.input(self.menu["take"])
        wait_until(lambda: self.editor.text == result, f"the suggestion in {self.editor.text!r}")


@pytest.fixture(params=EVERYWHERE, ids=" in ".join)
def menu(request: pytest.FixtureRequest, shared: Home) -> Iterator[Menu]:
    name, version = request.param
    held = MENUS[name]
    program, plugins = neovim_program(version), checkouts(*held["plugins"])
    with neovim_with(program, shared, plugins, held["lua"] + server(**in_menu())) as editor:
        yield Menu(editor, held)


@pytest.mark.parametrize("case", [ADD, CALL, MONEY, PARTED, DEDENTED, SWALLOWED])
def test_a_suggestion_is_taken(menu: Menu, case: str):
    result = taken(case)
    if menu.is_neovims and case == PARTED:
        # It indents blank lines, too.
        result = result.replace("\n\n", "\n    \n")
    if menu.is_neovims and case == DEDENTED:
        # It can write no line that is less indented than the cursor's.
        result = result.replace("\n    )", "")
    menu.take(case, result)


@pytest.mark.parametrize("where", ["workspace/configuration", "dg-lsp.toml"])
@pytest.mark.parametrize("name", ["blink.cmp", "nvim-cmp"])
def test_a_plugin_shows_suggestions_wherever_the_setting_stands(shared: Home, name: str, where: str):
    held = MENUS[name]
    own = {**PATIENT, "completion": "on"} if where == "workspace/configuration" else PATIENT
    lua = held["lua"] + server(settings={"dg-lsp": own})
    with neovim_with(neovim_program("0.12"), shared, checkouts(*held["plugins"]), lua) as editor:
        (editor.folder / "dg-lsp.toml").write_text('completion = "on"\n' if where == "dg-lsp.toml" else "")
        Menu(editor, held).take(CALL, taken(CALL))
