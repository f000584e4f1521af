"""Ghost text in Neovim 0.12 without any plugin."""

from __future__ import annotations

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-clients` brings it.")

from tests.e2e.cases import ADD, MONEY, PARTED, SWALLOWED
from tests.e2e.clients.conftest import taken
from tests.e2e.clients.neovim import server
from tests.e2e.editors.conftest import PATIENT, neovim_program
from tests.e2e.editors.neovim import neovim_with
from tests.engine.processes import Home, wait_until

NATIVE = """
vim.lsp.inline_completion.enable()
vim.keymap.set("i", "<Tab>", function()
  if not vim.lsp.inline_completion.get() then return "<Tab>" end
end, { expr = true })
"""


@pytest.mark.parametrize("case", [ADD, MONEY, PARTED, SWALLOWED])
def test_a_suggestion_is_shown_and_taken(shared: Home, case: str):
    program = neovim_program("0.12")
    with neovim_with(program, shared, [], server(settings={"dg-lsp": PATIENT}) + NATIVE) as editor:
        editor.open(case)
        editor.ready()
        editor.input("<Esc>gi")
        wait_until(editor.ghost, "a suggestion")
        editor.input("<Tab>")
        wait_until(lambda: editor.text == taken(case), f"it in {editor.text!r}")
