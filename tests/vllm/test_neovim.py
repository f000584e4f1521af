"""A real Neovim, the language server, the engine, vLLM and back."""

from __future__ import annotations

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")

from tests.e2e.editors.conftest import SERVE, neovim_program
from tests.e2e.editors.neovim import neovim
from tests.e2e.editors.remote import settings
from tests.e2e.editors.test_neovim_remote import takes_a_suggestion
from tests.engine.processes import home
from tests.vllm.server import KEY, VllmServer


def test_a_suggestion_is_shown_and_taken(server: VllmServer):
    with home(DG_LSP_SERVER_KEY=KEY) as place:
        program = neovim_program("0.12")
        with neovim(program, place, cmd=SERVE, settings=settings(server.url), keys=True) as editor:
            takes_a_suggestion(editor, server.url)
