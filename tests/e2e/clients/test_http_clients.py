"""llama.vim, minuet-ai.nvim and OpenAI's client against the engine's HTTP server, with the settings that docs/http.md
gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-clients` brings it.")

from tests.e2e.clients.checkouts import checkouts
from tests.e2e.clients.conftest import LINE, LINES
from tests.e2e.editors.conftest import neovim_program
from tests.e2e.editors.lua import as_lua
from tests.e2e.editors.neovim import Neovim, neovim_with
from tests.engine.processes import Home, home, wait_until
from tests.engine.server.http.asking import http_server
from tests.engine.talking import Talking, loads

SAID = "def area(w, h):\n    return w * h"
ASKED = [{"role": "user", "content": "Rewrite `def area`."}]


@pytest.fixture
def talking() -> Iterator[tuple[Home, str, Talking]]:
    """An engine of this process whose model answers messages, and its HTTP server's address."""
    model = Talking(says=SAID)
    with pytest.MonkeyPatch.context() as patch, home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            patch.setenv(name, place.environment[name])
        with http_server(place, loads(model), http_token_file="") as (_, server):
            yield place, server.status().http, model


@pytest.mark.parametrize("version", ["0.12", "0.11"])
def test_llama_vims_instruct_mode_rewrites_a_selection(talking: tuple[Home, str, Talking], version: str):
    place, address, model = talking
    config = {"endpoint_inst": f"http://{address}/v1/chat/completions", "auto_fim": False, "show_info": 0}
    lua = f"vim.g.llama_config = {as_lua(config)}\n"
    with neovim_with(neovim_program(version), place, checkouts("llama.vim"), lua) as editor:
        editor.open("▮def area(w, h):\n    return h * w\n\nprint(area(2, 3))\n", insert=False)
        editor.input("Vj:LlamaInstruct<CR>")
        editor.input("Multiply in order.<CR>")
        marks = "vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('vt_inst'), 0, -1, { details = true })"
        wait_until(lambda: "return w * h" in editor.lua(f"return vim.inspect({marks})"), "the answer")

        def taken() -> bool:
            # The callback that makes it acceptable runs some time after the last of the stream.
            editor.input("gg<Tab>")
            return editor.text == f"{SAID}\n\nprint(area(2, 3))\n"

        wait_until(taken, f"the answer in {editor.text!r}")
        # It also asks with an empty instruction, so that the server reads the selection while the user types.
        assert any("Multiply in order." in messages[-1]["content"] for messages in model.heard)


def test_openais_client_is_answered(talking: tuple[Home, str, Talking]):
    openai = pytest.importorskip("openai", reason="openai is not installed; `make test-clients` brings it.")
    _, address, model = talking
    with openai.OpenAI(base_url=f"http://{address}/v1", api_key="none", max_retries=0) as client:
        whole = client.chat.completions.create(model="dg", messages=ASKED, temperature=0.2, max_tokens=200)
        assert whole.choices[0].message.content == SAID
        assert whole.choices[0].finish_reason == "stop"
        assert whole.usage.completion_tokens > 5
        streamed = client.chat.completions.create(
            model="dg", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(streamed)
        assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == SAID
        assert chunks[-1].usage.total_tokens > 5
        short = client.chat.completions.create(model="dg", messages=ASKED, stop=["return"])
        assert short.choices[0].message.content == SAID.partition("return")[0]
        assert [each.id for each in client.models.list()]
        with pytest.raises(openai.BadRequestError, match="messages"):
            client.chat.completions.create(model="dg", messages=[])
        # Who stops reading ends it.
        model.delay_s, before = 0.05, model.passes
        with client.chat.completions.create(model="dg", messages=ASKED, stream=True) as answer:
            next(iter(answer))
        model.delay_s = 0.0
        wait_until(lambda: client.models.list().data, "the server after that")
        assert model.passes - before < len(SAID)


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
