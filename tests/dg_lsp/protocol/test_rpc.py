"""JSON-RPC at its border: texts are whole, positions are numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import METHOD_TO_TYPES, Position, message_direction
from pygls.exceptions import JsonRpcException

from dg_lsp.app.routes import register
from dg_lsp.backend.client import Launch
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.lenience import needed
from dg_lsp.protocol.messages import NOTIFICATIONS
from dg_lsp.protocol.rpc import Rpc
from engine.common.json_values import read_json
from tests.dg_lsp.handlers.test_server import Session

any_text = st.text(st.sampled_from("ab\ud83d\ude0b😋") | st.characters())


@given(st.recursive(any_text, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner), max_leaves=8))
def test_every_text_can_be_encoded(value):
    found = read_json(json.dumps(value).encode())
    json.dumps(found, ensure_ascii=False).encode()


def test_half_a_surrogate_pair_becomes_a_replacement_of_the_same_width():
    assert read_json(b'["a\\ud83db", "\\ud83d\\ude0b", "\\uDE0B"]') == ["a\ufffdb", "😋", "\ufffd"]


@pytest.mark.parametrize(("given", "taken"), [(-3, 0), (0, 0), (7, 7), (2**31, 2**31 - 1), (2**70, 2**31 - 1)])
def test_positions_outside_of_any_text_are_taken(given, taken):
    assert needed({"line": given, "character": given}, Position) == Position(line=taken, character=taken)


@pytest.mark.parametrize("given", [{}, {"line": 0}, {"line": "0", "character": 0}, {"line": 0, "character": 1.5}])
def test_what_is_no_position_is_refused(given):
    with pytest.raises(msgspec.ValidationError):
        needed(given, Position)


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
        "contentChanges": [{"text": "x"}, {"range": RANGE, "rangeLength": 1, "text": "x"}],
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
                    {"document": {**DOCUMENT, "version": 2}, "changes": [{"text": "x"}, {"range": RANGE, "text": "x"}]}
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


IDENTIFIED = {"textDocument", "textDocument.uri"}
PLACED = {"range", *(f"range.{end}{unit}" for end in ("start", "end") for unit in ("", ".line", ".character"))}
NEEDED: dict[str, set[str]] = {
    "textDocument/didOpen": {*IDENTIFIED, "textDocument.text"},
    "textDocument/didChange": {
        *IDENTIFIED,
        *(f"contentChanges{each}" for each in ("", ".0", ".0.text", ".1", ".1.text", *(f".1.{at}" for at in PLACED))),
    },
    "textDocument/didClose": IDENTIFIED,
    "notebookDocument/didOpen": {
        *(f"notebookDocument{each}" for each in ("", ".uri", ".cells", ".cells.0")),
        *("notebookDocument.cells.0.kind", "notebookDocument.cells.0.document", "cellTextDocuments"),
    },
    "notebookDocument/didChange": {
        *("notebookDocument", "notebookDocument.uri", "change"),
        *(
            f"change.cells{each}"
            for each in (
                *("", ".structure", ".structure.array", ".structure.array.start", ".structure.array.deleteCount"),
                *(
                    f".{of}{at}"
                    for of in ("structure.array.cells", "data")
                    for at in ("", ".0", ".0.kind", ".0.document")
                ),
                *(f".structure.didOpen{at}" for at in ("", ".0", ".0.uri", ".0.text")),
                *(f".structure.didClose{at}" for at in ("", ".0", ".0.uri")),
                *(f".textContent{at}" for at in ("", ".0", ".0.document", ".0.document.uri", ".0.changes")),
                *(f".textContent.0.changes{at}" for at in (".0", ".0.text", ".1", ".1.text")),
                *(f".textContent.0.changes.1.{at}" for at in PLACED),
            )
        ),
    },
    "notebookDocument/didClose": {"notebookDocument", "notebookDocument.uri"},
    "textDocument/inlineCompletion": {*IDENTIFIED, "position", "position.line", "position.character"},
    "textDocument/completion": {*IDENTIFIED, "position", "position.line", "position.character"},
    "textDocument/codeAction": {*IDENTIFIED, *PLACED},
    "workspace/didChangeWorkspaceFolders": {"event"},
    "workspace/didChangeWatchedFiles": set(),
    "workspace/executeCommand": {"command", "arguments"},
    "dg/status": set(),
    "dg/setEnabled": {"enabled", "language", "folder"},
}
"""What a message can't do without."""


def spoilt(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """A value, with a value of another type in each place in turn, and the place."""
    yield from ((at, other) for other in ("3", 3, 1.5, True, [3], {"a": 3}) if type(other) is not type(value))
    for key, held in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        for place, each in spoilt(held, f"{at}.{key}".strip(".")):
            whole = value.copy()
            whole[key] = each
            yield place, whole


@pytest.fixture(scope="module")
def rpc() -> Rpc:
    server = DgServer(Launch())
    register(server)
    return server.rpc


def told(method: str, params: Any) -> dict[str, Any]:
    is_request = "did" not in method
    return {"jsonrpc": "2.0", **({"id": 1} if is_request else {}), "method": method, "params": params}


@pytest.mark.parametrize("method", PARAMS)
def test_what_is_needed_is_what_the_protocol_says_and_the_rest_is_anything(rpc, method):
    rpc.structure_message(told(method, PARAMS[method]))
    for place, params in spoilt(PARAMS[method]):
        if place in NEEDED[method]:
            with pytest.raises((JsonRpcException, msgspec.ValidationError)):
                pytest.fail(f"{params} became {rpc.structure_message(told(method, params))}")
        elif place:
            rpc.structure_message(told(method, params))


@pytest.mark.parametrize("params", [{}, [], None])
def test_params_that_hold_nothing_may_be_spelt_in_any_way(rpc, params):
    rpc.structure_message({"jsonrpc": "2.0", "method": "initialized", "params": params})


def test_a_token_is_a_number_or_a_text_or_there_is_none(rpc):
    for token, taken in ((3, 3), ("three", "three"), (None, None), ([3], None)):
        params = PARAMS["workspace/executeCommand"] | {"workDoneToken": token}
        assert rpc.structure_message(told("workspace/executeCommand", params)).params.work_done_token == taken


def test_of_a_list_of_what_nobody_needs_nothing_is_looked_at(rpc, caplog):
    params = PARAMS["textDocument/codeAction"] | {"context": {"diagnostics": "a" * 10_000}}
    assert rpc.structure_message(told("textDocument/codeAction", params)).params.context.only is None
    assert caplog.text == ""


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
