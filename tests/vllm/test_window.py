"""LSP, engine, vLLM and back; and a server that is killed and started again while somebody types."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from tests.e2e.test_remote import OPTIONS, PROGRAM, has_state, suggestion_comes
from tests.e2e.window import window
from tests.engine.processes import home
from tests.vllm.server import KEY, VllmServer

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """One with as few steps as a team would have: a suggestion has to be there soon."""
    log = tmp_path_factory.mktemp("vllm") / "log"
    made = VllmServer(log, "--diffusion-config", '{"canvas_length": 96, "max_denoising_steps": 8}')
    made.start()
    try:
        made.wait()
        yield made
    finally:
        made.kill()


async def test_a_window_shows_what_the_server_fills(server: VllmServer):
    with home(DG_LSP_SERVER_KEY=KEY) as place:
        async with window(place, model=server.model, ready=False, options=OPTIONS) as held:
            assert await has_state(held, "ready") == f"Text around the cursor is sent to {server.url}."
            held.open(PROGRAM)
            assert await held.ghost(invoked=True) == " d * 7"


async def test_a_server_is_killed_and_started_again_in_mid_typing(server: VllmServer):
    with home(DG_LSP_SERVER_KEY=KEY) as place:
        async with window(place, model=server.model, ready=False, options=OPTIONS) as held:
            await has_state(held, "ready")
            held.open(PROGRAM)
            assert await held.ghost(invoked=True) == " d * 7"
            server.kill()
            held.editor.type(" x")
            assert await held.ghost(invoked=True) is None
            assert "can't be reached" in await has_state(held, "error")
            server.start()
            # Another program, of which no suggestion is remembered.
            held.open(PROGRAM.replace("7", "9"))
            while not await asyncio.to_thread(server.answers):
                assert await held.ghost(invoked=True) is None
                held.editor.type(" ")
                held.editor.delete(1)
                await asyncio.sleep(0.1)
            back = time.monotonic()
            await suggestion_comes(held)
            assert time.monotonic() - back <= 2
