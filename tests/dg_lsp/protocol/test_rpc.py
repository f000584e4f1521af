"""JSON-RPC at its border: texts are whole, positions are numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import METHOD_TO_TYPES, CodeActionParams, Position, message_direction
from pygls.exceptions import JsonRpcException

from dg_lsp.app.routes import register
from dg_lsp.app.server import DgServer
from dg_lsp.backend.client import Launch
from dg_lsp.protocol.framing import read
from dg_lsp.protocol.messages import NOTIFICATIONS
from dg_lsp.protocol.rpc import Rpc, converter
from tests.dg_lsp.app.test_server import Session

any_text = st.text(st.sampled_from("ab\ud83d\ude0b😋") | st.characters())


@given(st.recursive(any_text, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner), max_leaves=8))
def test_every_text_can_be_encoded(value):
    found = read(json.dumps(value).encode())
    json.dumps(found, ensure_ascii=False).encode()


def test_half_a_surrogate_pair_becomes_a_replacement_of_the_same_width():
    assert read(b'["a\\ud83db", "\\ud83d\\ude0b", "\\uDE0B"]') == ["a\ufffdb", "😋", "\ufffd"]


@pytest.mark.parametrize(("given", "taken"), [(-3, 0), (0, 0), (7, 7), (2**31, 2**31 - 1), (2**70, 2**31 - 1)])
def test_positions_outside_of_any_text_are_taken(given, taken):
    assert converter().structure({"line": given, "character": given}, Position) == Position(line=taken, character=taken)


@pytest.mark.parametrize("given", [{}, {"line": 0}, {"line": "0", "character": 0}, {"line": 0, "character": 1.5}])
def test_what_is_no_position_is_refused(given):
    with pytest.raises(msgspec.ValidationError):
        converter().structure(given, Position)


DOCUMENT = {"uri": "file:///a.py"}
PLACE = {"line": 0, "character": 0}
RANGE = {"start": PLACE, "end": PLACE}
FOLDER = {"uri": "file:///w", "name": "w"}
DIAGNOSTIC = {"range": RANGE, "message": "m", "severity": 1, "source": "s", "tags": [1], "data": {}}
ITEM = {**DOCUMENT, "languageId": "python", "version": 1, "text": "x"}
CELL = {"kind": 2, "document": "file:///a.py", "executionSummary": {"executionOrder": 1, "success": True}}
PARAMS: dict[str, Any] = {
    "textDocument/didOpen": {"textDocument": ITEM},
    "textDocument/didChange": {
        "textDocument": {**DOCUMENT, "version": 1},
        "contentChanges": [{"range": RANGE, "text": "x"}, {"text": "x"}],
    },
    "textDocument/didClose": {"textDocument": DOCUMENT},
    "notebookDocument/didOpen": {
        "notebookDocument": {**DOCUMENT, "notebookType": "jupyter-notebook", "version": 1, "cells": [CELL]},
        "cellTextDocuments": [ITEM],
    },
    "notebookDocument/didChange": {
        "notebookDocument": {**DOCUMENT, "version": 2},
        "change": {
            "cells": {
                "structure": {
                    "array": {"start": 0, "deleteCount": 1, "cells": [CELL]},
                    "didOpen": [ITEM],
                    "didClose": [DOCUMENT],
                },
                "data": [CELL],
                "textContent": [
                    {"document": {**DOCUMENT, "version": 2}, "changes": [{"range": RANGE, "text": "x"}, {"text": "x"}]}
                ],
            }
        },
    },
    "notebookDocument/didClose": {"notebookDocument": DOCUMENT, "cellTextDocuments": [DOCUMENT]},
    "textDocument/inlineCompletion": {
        "textDocument": DOCUMENT,
        "position": PLACE,
        "context": {"triggerKind": 1, "selectedCompletionInfo": {"range": RANGE, "text": "x"}},
    },
    "textDocument/completion": {"textDocument": DOCUMENT, "position": PLACE, "context": {"triggerKind": 1}},
    "textDocument/codeAction": {
        "textDocument": DOCUMENT,
        "range": RANGE,
        "context": {"diagnostics": [DIAGNOSTIC], "only": ["refactor"], "triggerKind": 1},
    },
    "workspace/didChangeWorkspaceFolders": {"event": {"added": [FOLDER], "removed": [FOLDER]}},
    "workspace/didChangeWatchedFiles": {"changes": [{"uri": "file:///w/.dgignore", "type": 1}]},
    "workspace/executeCommand": {"command": "dg.accepted", "arguments": []},
    "dg/status": {"uri": "file:///a.py", "engine": True},
    "dg/setEnabled": {"enabled": True, "language": "python", "folder": "file:///w"},
}


def spoilt(value: Any) -> Iterator[Any]:
    """A value, with a value of another type in each place in turn, but where the protocol takes anything."""
    yield from (other for other in ("3", 3, 1.5, True, [3], {"a": 3}) if type(other) is not type(value))
    if isinstance(value, dict):
        yield from ({**value, key: each} for key, held in value.items() if key != "data" for each in spoilt(held))
    if isinstance(value, list):
        yield from ([*value[:at], each, *value[at + 1 :]] for at, held in enumerate(value) for each in spoilt(held))


@pytest.fixture(scope="module")
def rpc() -> Rpc:
    server = DgServer(Launch())
    register(server)
    return server.rpc


def told(method: str, params: Any) -> dict[str, Any]:
    is_request = "did" not in method
    return {"jsonrpc": "2.0", **({"id": 1} if is_request else {}), "method": method, "params": params}


@pytest.mark.parametrize("method", PARAMS)
def test_params_of_another_type_than_the_protocol_says_are_refused(rpc, method):
    rpc.structure_message(told(method, PARAMS[method]))
    for params in spoilt(PARAMS[method]):
        with pytest.raises((JsonRpcException, msgspec.ValidationError)):
            pytest.fail(f"{params} became {rpc.structure_message(told(method, params))}")


@pytest.mark.parametrize("params", [{}, [], None])
def test_params_that_hold_nothing_may_be_spelt_in_any_way(rpc, params):
    rpc.structure_message({"jsonrpc": "2.0", "method": "initialized", "params": params})


def test_a_token_is_a_number_or_a_text(rpc):
    for token in (3, "three", None):
        params = PARAMS["textDocument/completion"] | {"workDoneToken": token}
        assert rpc.structure_message(told("textDocument/completion", params)).params.work_done_token == token
    with pytest.raises(JsonRpcException):
        rpc.structure_message(told("textDocument/completion", params | {"workDoneToken": [3]}))


def test_the_first_thing_that_is_wrong_is_enough():
    context = {"diagnostics": "a" * 10_000}
    range_ = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    with pytest.raises(TypeError):  # and no group of ten thousand errors
        converter().structure(
            {"textDocument": {"uri": "file:///a.py"}, "range": range_, "context": context}, CodeActionParams
        )


@pytest.mark.asyncio
async def test_a_notification_that_is_sent_as_a_request_is_answered_once_and_not_carried_out():
    session = Session()
    await session.begin()
    session.told.clear()
    of_clients = [
        method
        for method, about in METHOD_TO_TYPES.items()
        if not about[1] and message_direction(method) != "serverToClient"
    ]
    proper = {"$/cancelRequest": {"id": 99}, "$/setTrace": {"value": "off"}, **PARAMS}
    sent = [*of_clients, *NOTIFICATIONS]
    for id_, method in enumerate(sent):
        await session.send(method, proper.get(method, {"settings": {}}), id=id_)
    assert [(each.get("id"), "error" in each) for each in session.told] == [(id_, True) for id_ in range(len(sent))]
    assert session.server.documents.uris() == []
