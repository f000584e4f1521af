"""A session's server in this process, its client played by a list of messages."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from lsprotocol.types import TextDocumentItem

from dg_lsp.app import session as session_module
from dg_lsp.app.routes import register
from dg_lsp.backend.client import EngineFailure, Launch
from dg_lsp.backend.resident import Resident
from dg_lsp.backend.status import StatusBoard
from dg_lsp.backend.timeouts import Timeouts
from dg_lsp.config.settings import CPU_DEADLINE_MS, GPU_DEADLINE_MS
from dg_lsp.documents import documents
from dg_lsp.edits.analyses import NOTHING
from dg_lsp.handlers.server import DgServer
from engine.common.analysis import Analysis, SyntaxErrorRegion
from engine.common.json_values import UNREADABLE, read_json
from engine.common.messages import EngineState, Notice
from engine.common.request import Candidate, Filled, FillRequest

URI = "file:///w/a.py"


class Session:
    """A server past `initialize`."""

    def __init__(self) -> None:
        self.server = DgServer(Launch())
        register(self.server)
        self.server.rpc.set_writer(self, include_headers=False)
        self.told: list[Any] = []

    def write(self, data: bytes) -> None:
        self.told.append(json.loads(data))

    async def send(self, method: str, params: Any, **more: Any) -> None:
        self.server.rpc.take(
            read_json(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode())
        )
        for _ in range(5):
            await asyncio.sleep(0)

    async def begin(self, *, enabled: bool = False, **capabilities: Any) -> None:
        params = {"processId": None, "rootUri": None, "capabilities": capabilities}
        await self.send("initialize", {**params, "initializationOptions": {"enabled": enabled}}, id=0)

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
async def test_why_nothing_was_shown_is_forgotten_when_suggestions_are_switched(session):
    await session.begin(enabled=True)
    server = session.server
    server.board.engine(EngineState(name="ready"))
    server.board.shown("Not sure enough.", "")
    assert server.board.current.silence
    await session.send("dg/setEnabled", {"enabled": True}, id=1)
    server.board.engine(EngineState(name="ready"))
    assert server.board.current.silence == ""


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


@pytest.mark.parametrize(
    ("capabilities", "method", "params"),
    [
        ({"experimental": {"dgStatus": True}}, "dg/advice", {"message": "Run it."}),
        ({}, "window/showMessage", {"type": 3, "message": "Run it."}),
    ],
)
@pytest.mark.asyncio
async def test_advice_of_the_engine_is_shown(session, capabilities, method, params):
    await session.begin(**capabilities)
    session.server.resident.client._notice(Notice(state=EngineState(name="ready"), advice="Run it."))
    assert {"jsonrpc": "2.0", "method": method, "params": params} in session.told


@pytest.mark.asyncio
async def test_a_change_to_what_is_no_text_costs_the_document_until_all_of_it_comes(session):
    await session.begin(experimental={"dgReopen": True})
    await session.open("a = 1\n")
    document = {"uri": URI, "version": 2}
    await session.send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": 3}]})
    assert session.server.documents.get(URI) is None
    assert session.told[-1] == {"jsonrpc": "2.0", "method": "dg/reopen", "params": {"uri": URI}}
    await session.send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": "3"}]})
    assert session.server.documents.get(URI).text == "3"


@pytest.mark.asyncio
async def test_the_lines_of_a_document_are_looked_for_when_somebody_needs_them(session):
    await session.begin()
    # Indexed on the event loop, fifty of these at once would hold up whoever types.
    text = "some_name = another_name + 1\n" * 30_000
    await session.open(text)
    document = session.server.documents.get(URI)
    assert "starts" not in vars(document.lines)
    await session.change("x")
    assert "starts" in vars(session.server.documents.get(URI).lines)


@pytest.mark.asyncio
async def test_nothing_is_kept_of_notifications_that_were_handled(session):
    await session.begin()
    await session.open("a = 1\n")
    for version in range(2, 102):
        await session.change("x", version=version)
    assert len(session.server.rpc._request_futures) == 0


@pytest.mark.asyncio
async def test_nothing_that_was_true_of_an_engine_outlives_it(session):
    server = session.server
    await session.begin()
    snapshot = server.documents.open(TextDocumentItem(uri=URI, language_id="python", version=1, text="a = \n"))
    server.resident.device, server.resident.instructions = "cuda:0", False
    assert server.resident.deadline_ms == GPU_DEADLINE_MS
    server.analyses.found(snapshot, 0, Analysis(errors=(SyntaxErrorRegion(start=0, end=4, spots=(), what=""),)))
    server.in_flight.debounce.max_delay_ms = 150
    for at_ms in (0, 10, 20):
        server.in_flight.debounce.key(at_ms)
    server.in_flight.debounce.answered(1000)
    assert server.in_flight.debounce.delay_ms(20) > 0
    server.chosen_engine.other = "The engine runs on cuda:0."

    server.engine_is(EngineState(name="starting"))
    assert server.resident.deadline_ms == CPU_DEADLINE_MS
    assert server.resident.instructions is None
    assert await server.analyses.at(snapshot, 0) == NOTHING
    assert server.in_flight.debounce.delay_ms(20) == 0
    assert server.chosen_engine.other == ""


class NoStatus:
    """An engine that goes away right after an answer."""

    timeouts = Timeouts()

    async def fill(self, request: FillRequest, **_: Any) -> Filled:
        return Filled(model="", device="", candidates=(), width=1, steps=1, forwards=1)

    async def status(self) -> Any:
        raise EngineFailure("unavailable", "The engine ended before it answered: try again.")


@pytest.mark.asyncio
async def test_an_edit_that_is_done_is_not_lost_with_the_engine():
    resident = Resident(NoStatus(), StatusBoard(lambda _: None))  # type: ignore[arg-type]
    assert (await resident.edit(FillRequest(prefix="", suffix=""), "edit a")).width == 1


EDITS = {"workspace": {"applyEdit": True}}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "applied"),
    [
        ({"result": {"applied": True}}, True),
        ({"result": {"applied": True}, "error": None}, True),
        ({"result": {"applied": False}}, False),
        ({"result": None}, False),
        ({"result": {}}, False),
        ({"result": True}, False),
        ({"error": "no"}, False),
        ({"error": {"code": -1, "message": "no"}}, False),
        ({}, False),
    ],
)
async def test_a_command_is_answered_whatever_the_editor_says_of_its_edit(session, monkeypatch, answer, applied):
    async def edit(*_: object, **__: object) -> Filled:
        best = Candidate(text="b = 2", tokens=3, confidence=0.9, score=0.0)
        return Filled(model="", device="", candidates=(best,), width=1, steps=1, forwards=1)

    async def told(about: Callable[[Any], bool]) -> Any:
        async with asyncio.timeout(20):
            while not (found := [each for each in session.told if about(each)]):
                await asyncio.sleep(0.005)
        return found[-1]

    monkeypatch.setattr(session.server.resident, "edit", edit)
    monkeypatch.setattr(session.server.resident, "warm", lambda: None)
    await session.begin(enabled=True, **EDITS)
    await session.open("a = 1\n")
    line = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}
    command = {"command": "dg.rewriteSelection", "arguments": [{"uri": URI, "range": line}]}
    await session.send("workspace/executeCommand", command, id=7)
    asked = await told(lambda each: each.get("method") == "workspace/applyEdit")
    assert type(asked["id"]) is int
    session.server.rpc.take({"jsonrpc": "2.0", "id": asked["id"], **answer})
    said = await told(lambda each: each.get("id") == 7)
    assert said["result"]["applied"] == applied
    assert bool(said["result"].get("message")) != applied


@pytest.mark.asyncio
async def test_where_the_engine_failed_a_command_says_so(session, monkeypatch):
    async def nothing(*_: object) -> bool:
        return False

    monkeypatch.setattr(session.server.resident, "wait_until_ready", nothing)
    monkeypatch.setattr(session.server.resident, "warm", lambda: None)
    await session.begin(enabled=True)
    await session.open("a = \n")
    session.server.resident.client.state = EngineState(name="error", message="The weights of m do not fit.")
    command = {"command": "dg.fillHere", "arguments": [{"uri": URI, "position": {"line": 0, "character": 4}}]}
    await session.send("workspace/executeCommand", command, id=7)
    async with asyncio.timeout(20):
        while not (said := [each for each in session.told if each.get("id") == 7]):
            await asyncio.sleep(0.005)
    assert said[0]["result"]["message"] == "The weights of m do not fit."


class LoadsAtLast:
    """An engine whose model can be loaded from the second time on."""

    timeouts = Timeouts()
    state = EngineState(name="error")

    def __init__(self) -> None:
        self.asked = 0

    async def warm(self) -> None:
        self.asked += 1
        if self.asked == 1:
            raise EngineFailure("model", "The model's files are being copied.")
        self.state = EngineState(name="ready")

    async def status(self) -> Any:
        raise EngineFailure("unavailable", "The engine ended before it answered: try again.")


@pytest.mark.asyncio
async def test_a_model_that_could_not_be_loaded_is_there_as_soon_as_the_engine_tries_again():
    resident = Resident(LoadsAtLast(), StatusBoard(lambda _: None))  # type: ignore[arg-type]
    assert not await resident.wait_until_ready()
    assert await resident.wait_until_ready()


@pytest.mark.asyncio
async def test_between_two_messages_others_have_a_turn(monkeypatch):
    monkeypatch.setattr(session_module, "_end_in_any_case", lambda: None)
    taken, turns = list[object](), list[int]()

    async def others() -> None:
        while True:
            turns.append(len(taken))
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    bodies = [json.dumps(number).encode() for number in range(100)]

    def take(message: object) -> None:
        taken.append(message)
        # By now the reader has read more.
        time.sleep(0.001)

    await session_module.Inbox(map(read_json, [*bodies, b""]), take).take_all()
    other.cancel()
    assert taken == [*range(100), UNREADABLE]
    assert max(later - earlier for earlier, later in pairwise(turns)) == 1
