"""llama.vim and minuet-ai.nvim against the engine's HTTP server, with the settings that docs/http.md gives."""

from __future__ import annotations

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-clients` brings it.")

from tests.e2e.clients.checkouts import checkouts
from tests.e2e.clients.conftest import LINE, LINES
from tests.e2e.editors.conftest import neovim_program
from tests.e2e.editors.lua import as_lua
from tests.e2e.editors.neovim import Neovim, neovim_with
from tests.engine.processes import Home, wait_until


@pytest.mark.parametrize("version", ["0.12", "0.11"])
@pytest.mark.parametrize("case", [LINE, LINES])
def test_llama_vim_shows_a_suggestion_and_takes_it(served: tuple[Home, str], version: str, case: str):
    home, address = served
    config = {"endpoint_fim": f"http://{address}/infill", "t_max_predict_ms": 20_000, "show_info": 0}
    lua = f"vim.g.llama_config = {as_lua(config)}\n"
    with neovim_with(neovim_program(version), home, checkouts("llama.vim"), lua) as editor:
        shown_and_taken(editor, case, "vt_fim", "<Tab>")


MINUET = """
require("minuet").setup({{
  provider = "openai_fim_compatible",
  n_completions = 1,
  request_timeout = 20,
  provider_options = {{ openai_fim_compatible = {{
    name = "dg", model = "dg", api_key = "TERM", end_point = "http://{address}/v1/completions",
  }} }},
  virtualtext = {{ auto_trigger_ft = {{ "python" }}, keymap = {{ accept = "<A-a>" }} }},
}})
"""


@pytest.mark.parametrize("version", ["0.12", "0.11"])
@pytest.mark.parametrize("case", [LINE, LINES])
def test_minuet_shows_a_suggestion_and_takes_it(served: tuple[Home, str], version: str, case: str):
    home, address = served
    lua = MINUET.format(address=address)
    with neovim_with(neovim_program(version), home, checkouts("minuet-ai.nvim"), lua) as editor:
        shown_and_taken(editor, case, "minuet.virtualtext", "<A-a>")
        assert editor.messages == []


def shown_and_taken(editor: Neovim, case: str, namespace: str, key: str) -> None:
    """Type the last blank before the answer, where a whole statement is to come, wait for the answer, and take it."""
    before, answer, after = case.split("▮")
    editor.open(f"{before[:-1]}▮{after}")
    editor.input(before[-1])
    first = answer.split("\n")[0]
    wait_until(lambda: first in "".join(text for _, _, text, _ in editor.marks(namespace)), "the suggestion")
    editor.input(key)
    wait_until(lambda: editor.text == case.replace("▮", ""), f"the suggestion in {editor.text!r}")
