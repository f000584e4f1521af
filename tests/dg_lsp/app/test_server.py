"""A session's server in this process, its client played by a list of messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from dg_lsp.app.routes import register
from dg_lsp.app.server import Server
from dg_lsp.backend.client import Launch
from dg_lsp.documents import documents

URI = "file:///w/a.py"


class Session:
    """A server past its greeting."""

    def __init__(self) -> None:
        self.server = Server(Launch())
        register(self.server)
        self.server.rpc.set_writer(self, include_headers=False)
        self.told: list[Any] = []

    def write(self, data: bytes) -> None:
        self.told.append(json.loads(data))

    async def send(self, method: str, params: Any, **more: Any) -> None:
        self.server.rpc.receive(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode())
        for _ in range(5):
            await asyncio.sleep(0)

    async def begin(self, **capabilities: Any) -> None:
        params = {"processId": None, "rootUri": None, "capabilities": capabilities}
        await self.send("initialize", {**params, "initializationOptions": {"enabled": False}}, id=0)

    async def open(self, text: str, uri: str = URI) -> None:
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        await self.send("textDocument/didOpen", {"textDocument": document})

    async def change(self, text: str, uri: str = URI, version: int = 2) -> None:
        at = {"line": 0, "character": 0}
        change = {"range": {"start": at, "end": at}, "text": text}
        document = {"uri": uri, "version": version}
        await self.send("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})


@pytest.fixture
def session() -> Iterator[Session]:
    return Session()


@pytest.mark.asyncio
async def test_a_change_that_fails_costs_the_document_and_the_editor_is_asked_for_it(session, monkeypatch, caplog):
    await session.begin(experimental={"dgReopen": True})
    await session.open("a = 1\n")
    await session.open("b = 1\n", "file:///w/b.py")
    monkeypatch.setattr(documents, "span_of", lambda *_: 1 / 0)
    await session.change("x")
    assert session.server.documents.uris() == ["file:///w/b.py"]
    assert session.told[-1] == {"jsonrpc": "2.0", "method": "dg/reopen", "params": {"uri": URI}}
    assert "did_change failed" in caplog.text
    await session.change("x")
    assert sum(each.get("method") == "dg/reopen" for each in session.told) == 1
    await session.open("a = 1\n")
    assert session.server.documents.get(URI).text == "a = 1\n"


@pytest.mark.asyncio
async def test_nothing_is_kept_of_notifications_that_were_handled(session):
    await session.begin()
    await session.open("a = 1\n")
    for version in range(2, 102):
        await session.change("x", version=version)
    assert len(session.server.rpc._request_futures) == 0
