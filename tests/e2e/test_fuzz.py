"""Whatever a client sends, each request gets one answer, nothing pops up, and the server goes on."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pygls.exceptions import JsonRpcException

from dg_lsp.protocol.framing import frame
from dg_lsp.replay.connection import ServerConnection
from tests.e2e.test_start import HELLO
from tests.engine.processes import WAIT_S, Home

URIS = ("file:///w/a.py", "untitled:b", "file:///w/.env", "not a uri", "")
numbers = st.sampled_from([-(2**31), -1, 0, 1, 2, 5, 2**31, 2**70])
texts = st.text(st.sampled_from("ab(\n\r😋\ud83d "), max_size=8)
positions = st.fixed_dictionaries({"line": numbers, "character": numbers})
ranges = st.fixed_dictionaries({"start": positions, "end": positions})
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["uri", "text", "id", "params"]), inner)
    ),
    max_leaves=6,
)
document = st.fixed_dictionaries({"uri": st.sampled_from(URIS), "version": numbers})
changes = st.lists(
    st.fixed_dictionaries({"text": texts}, optional={"range": ranges}) | junk.map(lambda value: {"text": value}),
    max_size=3,
)
selected = st.fixed_dictionaries({"range": ranges, "text": texts})
PROPER: dict[str, st.SearchStrategy[Any]] = {
    "textDocument/didOpen": st.fixed_dictionaries(
        {
            "textDocument": st.fixed_dictionaries(
                {"uri": st.sampled_from(URIS), "languageId": st.just("python"), "version": numbers, "text": texts}
            )
        }
    ),
    "textDocument/didChange": st.fixed_dictionaries({"textDocument": document, "contentChanges": changes}),
    "textDocument/didClose": st.fixed_dictionaries({"textDocument": document}),
    "textDocument/inlineCompletion": st.fixed_dictionaries(
        {
            "textDocument": document,
            "position": positions,
            "context": st.fixed_dictionaries(
                {"triggerKind": st.sampled_from([1, 2, 3])}, optional={"selectedCompletionInfo": selected}
            ),
        }
    ),
    "workspace/didChangeConfiguration": st.fixed_dictionaries({"settings": junk}),
    "workspace/executeCommand": st.fixed_dictionaries(
        {"command": st.sampled_from(["dg.accepted", "x"])}, optional={"arguments": st.lists(junk, max_size=2)}
    ),
    "dg/status": st.fixed_dictionaries({}, optional={"uri": st.sampled_from(URIS)}),
    "$/cancelRequest": st.fixed_dictionaries({"id": st.integers(0, 60) | st.text(max_size=2)}),
    "textDocument/completion": junk,
    "initialized": junk,
    "$/setTrace": junk,
    "workspace/didChangeWorkspaceFolders": junk,
}
ASKED = ("textDocument/inlineCompletion", "workspace/executeCommand", "dg/status", "textDocument/completion")
methods = st.sampled_from(sorted(PROPER))
messages = methods.flatmap(lambda method: st.tuples(st.just(method), PROPER[method] | junk)) | st.binary(max_size=30)


class Session:
    """A server for all examples, on an event loop of its own."""

    def __init__(self, place: Home) -> None:
        self.loop = asyncio.new_event_loop()
        self.popups: list[str] = []
        self.place = place

    async def start(self) -> None:
        command = [sys.executable, "-m", "dg_lsp", "serve"]
        self.wire = await ServerConnection.start(command, self.place.environment)
        self.wire.on_notification = lambda method, _: self.popups.append(method) if "show" in method else None
        options = {"inline": {"deadline_ms": 200}, "stats": False}
        await self.wire.request("initialize", {**HELLO, "initializationOptions": options})
        self.wire.notify("initialized", {})
        async with asyncio.timeout(WAIT_S):
            while (await self.state()) != "ready":
                await asyncio.sleep(0.02)

    async def state(self) -> str:
        return (await self.wire.request("dg/status", {}))["state"]

    async def survive(self, sent: list[Any]) -> None:
        answers = list[asyncio.Future[Any]]()
        for message in sent:
            if isinstance(message, bytes):
                self.wire.process.stdin.write(frame(message) if len(message) % 2 else message + b"\r\n")
                continue
            method, params = message
            if method in ASKED:
                answers.append(self.wire.ask(method, params)[1])
            else:
                self.wire.notify(method, params)
        async with asyncio.timeout(WAIT_S):
            results = await asyncio.gather(*answers, return_exceptions=True)
            assert await self.state() in ("ready", "busy")
        unexpected = [
            error for error in results if isinstance(error, Exception) and not isinstance(error, JsonRpcException)
        ]
        assert unexpected == []
        assert "Traceback" not in json.dumps([str(result) for result in results])
        assert self.popups == []


@pytest.fixture(scope="module")
def session(shared) -> Iterator[Session]:
    held = Session(shared)
    held.loop.run_until_complete(held.start())
    yield held
    assert held.loop.run_until_complete(held.wire.close()) == 0
    held.loop.close()


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(sent=st.lists(messages, max_size=12))
def test_any_messages(session, sent):
    session.loop.run_until_complete(session.survive(sent))
