"""Ghost text of a model on a server: LSP, engine, HTTP and back."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from tests.e2e.window import Window, until, window
from tests.engine.models.remote.fake_server import KEY, MODEL, fake_server
from tests.engine.processes import home

pytestmark = pytest.mark.asyncio
PROGRAM = "c = 4\nd = c * 7\ne =▮\nf = e * 7\ng = f * 7\nh = g * 7\n"
OPTIONS = {"inline": {"deadline_ms": 20_000, "threshold": 0}, "context": {"enabled": False}}
"""The toy has never seen another file beside its own."""


async def has_state(held: Window, name: str) -> str:
    """Wait for a state; its message."""

    async def holds() -> dict[str, str] | None:
        told = await held.status()
        return told if told["state"] == name else None

    return (await until(holds, name))["message"]


async def suggestion_comes(held: Window, seconds: float = 60) -> float:
    """Type and ask until there is one, and how long that took in seconds."""
    began = time.monotonic()
    while not await held.ghost(invoked=True):
        assert time.monotonic() - began < seconds, (await held.status())["message"]
        held.editor.type(" ")
        held.editor.delete(1)
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def test_a_server_s_model_suggests_and_it_is_said_where_text_goes():
    with fake_server() as server, home(DG_LSP_SERVER_KEY=KEY) as place:
        async with window(place, model=server.model, ready=False, options=OPTIONS) as held:
            assert (
                await has_state(held, "ready") == f"Text around the cursor is sent to http://127.0.0.1:{server.port}."
            )
            held.open(PROGRAM)
            assert await held.ghost(invoked=True) == " d * 7"
            # Neither the key nor code is in what is written down.
            logs = "".join(file.read_text() for file in place.logs.iterdir())
            assert KEY not in logs
            assert "d = c" not in logs
            told = json.dumps(await held.status(engine=True)) + held.client.stderr
            assert KEY not in told


async def test_a_server_goes_away_in_mid_typing_and_comes_back():
    with home(DG_LSP_SERVER_KEY=KEY) as place:
        with fake_server() as server:
            name, port = server.model, server.port
        async with window(place, model=name, ready=False, options=OPTIONS) as held:
            await has_state(held, "ready")
            held.open(PROGRAM)
            assert await held.ghost(invoked=True) is None
            message = await has_state(held, "error")
            assert "can't be reached" in message
            assert (await held.status())["server"] == f"http://127.0.0.1:{port}"
            assert "`dg-lsp engine restart --model bundled` switches to the model of this machine" in message
            with fake_server(port=port):
                assert await suggestion_comes(held) <= 2
                await has_state(held, "ready")
            held.editor.type(" x")
            assert await held.ghost(invoked=True) is None
            with fake_server(port=port, version="0.30.1") as older:
                held.editor.type("y")
                assert await held.ghost(invoked=True) is None
                assert "runs vLLM 0.30" in await has_state(held, "error")
                assert older.completions == []


async def test_a_project_chooses_no_server(tmp_path):
    (tmp_path / "dg-lsp.toml").write_text(
        '[engine]\nmodel = "vllm+https://evil.example/m"\nkey_file = "/etc/passwd"\nallow_insecure = true\n'
    )
    with fake_server() as server, home(DG_LSP_SERVER_KEY=KEY) as place:
        options = {
            **OPTIONS,
            "engine": {"model": server.model.partition("?")[0], "tokenizer": str(MODEL)},
        }
        async with window(place, ready=False, options=options, folders=[tmp_path], log="by a project") as held:
            assert f"127.0.0.1:{server.port}" in await has_state(held, "ready")
            held.open(PROGRAM, path="toy.py")
            assert await held.ghost(invoked=True) == " d * 7"
            held.client.messages.clear()


async def test_what_is_excluded_is_not_sent(tmp_path):
    (tmp_path / ".dgignore").write_text("secret.py\n")
    with fake_server() as server, home(DG_LSP_SERVER_KEY=KEY) as place:
        async with window(place, model=server.model, ready=False, options=OPTIONS, folders=[tmp_path]) as held:
            await has_state(held, "ready")

            async def warmed_up() -> int | None:
                return len(server.completions) or None

            # What the engine asks by itself has nothing of any file, and comes a moment later, in one request or two.
            await until(warmed_up, "a first fill")
            own = server.completions[0]["prompt"]
            held.open(PROGRAM, path="secret.py")
            assert await held.ghost(invoked=True) is None
            assert all(each["prompt"] == own for each in server.completions)


async def test_a_key_that_comes_sooner_closes_the_socket_of_the_one_before():
    with fake_server() as server, home(DG_LSP_SERVER_KEY=KEY) as place:
        async with window(place, model=server.model, ready=False, options=OPTIONS) as held:
            await has_state(held, "ready")
            held.open(PROGRAM)
            server.delay_s, before = 1.0, len(server.completions)
            asked = held.editor.ask(invoked=True)

            async def sent() -> bool:
                return len(server.completions) > before

            async def closed() -> bool:
                return server.cut > 0

            await until(sent, "the request")
            held.editor.cancel(asked)
            await until(closed, "its socket to close")
            server.delay_s = 0.0
            assert await held.ghost(invoked=True) == " d * 7"
