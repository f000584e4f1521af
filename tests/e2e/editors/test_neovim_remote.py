"""A real Neovim whose suggestions come from a server's model."""

from __future__ import annotations

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")

from tests.e2e.editors.conftest import SERVE
from tests.e2e.editors.neovim import Neovim, neovim
from tests.e2e.editors.remote import PROGRAM, settings
from tests.engine.models.remote.fake_server import KEY, fake_server
from tests.engine.processes import WAIT_S, home, wait_until


def takes_a_suggestion(editor: Neovim, url: str) -> None:
    editor.open(PROGRAM)
    editor.attached()
    wait_until(lambda: editor.status()["state"] == "ready", "the model", 2 * WAIT_S)
    assert editor.lua("return require('dg').statusline()") == f"dg → {url.removeprefix('http://')}"
    assert editor.status()["message"] == f"Text around the cursor is sent to {url}."
    editor.input("=")
    editor.sees(" d * 7")
    editor.input("<Tab>")
    wait_until(lambda: editor.text == PROGRAM.replace("▮", "= d * 7"), "the suggestion in the text")


def test_a_suggestion_of_a_server_is_shown_and_taken(newest):
    with fake_server() as server, home(DG_LSP_SERVER_KEY=KEY) as place:
        url = f"http://127.0.0.1:{server.port}"
        with neovim(newest, place, cmd=SERVE, settings=settings(url), keys=True) as editor:
            takes_a_suggestion(editor, url)
