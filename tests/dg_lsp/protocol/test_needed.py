"""What a client says and nobody needs costs nothing; what is needed and can't be read costs that one message."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lsprotocol.types import ApplyWorkspaceEditParams, RegistrationParams, WorkspaceEdit

from dg_lsp.protocol.lenience import TriggerKinds
from tests.dg_lsp.handlers.test_server import URI, Session

PLACE = {"line": 0, "character": 0}
SPAN = {"start": PLACE, "end": {"line": 0, "character": 5}}
DIAGNOSTIC = {"range": SPAN, "message": "m"}
TEXT = "a = 1\n"


@pytest.fixture
def session() -> Session:
    return Session()


async def answer(session: Session, method: str, params: Any) -> Any:
    """What a request is answered with; its result, or its error."""
    await session.send(method, params, id=7)
    while not (found := [each for each in session.told if each.get("id") == 7 and "method" not in each]):
        await session.send("$/setTrace", {"value": "off"})
    return found[-1].get("result", found[-1].get("error"))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "context",
    [
        {"diagnostics": [{**DIAGNOSTIC, "tags": [-1]}]},
        {"diagnostics": [{**DIAGNOSTIC, "severity": 5}]},
        {"diagnostics": [{**DIAGNOSTIC, "code": {"value": "E1", "target": "https://x"}}]},
        {"diagnostics": [{**DIAGNOSTIC, "message": {"kind": "markdown", "value": "*m*"}}]},
        {"diagnostics": [{**DIAGNOSTIC, "range": None}, 5]},
        {"diagnostics": [{**DIAGNOSTIC, "relatedInformation": [{"location": 3}], "codeDescription": "x"}]},
        {"diagnostics": {}},
        {"diagnostics": None},
        {},
        None,
        {"diagnostics": [], "only": [None, "refactor.rewrite", 5]},
        {"diagnostics": [], "only": None, "triggerKind": 0},
        {"diagnostics": [], "triggerKind": "manual"},
    ],
    ids=str,
)
async def test_no_diagnostic_of_another_server_costs_the_actions(session, context):
    await session.begin(enabled=True)
    await session.open(TEXT)
    params = {"textDocument": {"uri": URI}, "range": SPAN, "context": context, "workDoneToken": [3]}
    found = await answer(session, "textDocument/codeAction", params)
    assert [each["kind"] for each in found] == ["refactor.rewrite"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("context", "invoked"),
    [
        # In drafts of LSP 3.18 it was what 1 is now.
        ({"triggerKind": 0}, True),
        ({"triggerKind": 1.0}, True),
        ({"triggerKind": 2.0}, False),
        ({"triggerKind": 9}, False),
        ({"triggerKind": None}, False),
        ({}, False),
        (None, False),
        ({"triggerKind": 1, "selectedCompletionInfo": None}, True),
        ({"triggerKind": 1, "selectedCompletionInfo": {"text": "x"}}, True),
    ],
    ids=str,
)
async def test_ghost_text_is_answered_whatever_called_for_it(session, context, invoked, monkeypatch):
    wanted = list[bool]()

    async def suggest(gap: Any, *, invoked: bool, lane: object) -> list[Any]:
        wanted.append(invoked)
        return []

    await session.begin(enabled=True)
    await session.open(TEXT)
    monkeypatch.setattr(session.server.suggester, "suggest", suggest)
    params = {"textDocument": {"uri": URI}, "position": PLACE, "context": context}
    assert await answer(session, "textDocument/inlineCompletion", params) is None
    assert wanted == [invoked]


def test_who_calls_with_0_types_with_1():
    final, draft = TriggerKinds(), TriggerKinds()
    assert [final.is_invoked(kind) for kind in (1, 2, 1, 9, -1)] == [True, False, True, False, False]
    assert [draft.is_invoked(kind) for kind in (0, 1, 0, 1, 2)] == [True, False, True, False, False]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("document", "changes", "text"),
    [
        ({"version": 2}, [{"range": None, "text": "b"}], "b"),
        ({"version": 2.0}, [{"text": "b"}], "b"),
        ({"version": None}, [{"text": "b"}], "b"),
        ({}, [{"text": "b"}], "b"),
        ({"version": "2"}, [{"text": "b"}], "b"),
        ({"version": 2}, [{"range": SPAN, "rangeLength": -1, "text": "b"}], "b\n"),
        ({"version": 2}, [{"range": SPAN, "rangeLength": "5", "text": "b"}], "b\n"),
        ({"version": 2}, [{"range": {"start": PLACE, "end": {"line": 0.0, "character": 5.0}}, "text": "b"}], "b\n"),
        ({"version": 2}, [{"range": 5, "text": "c"}, {"text": 3}, {"text": "b"}], "b"),
        ({"version": 2}, {}, TEXT),
    ],
    ids=str,
)
async def test_a_change_whose_text_is_known_is_taken(session, document, changes, text):
    await session.begin(experimental={"dgReopen": True})
    await session.open(TEXT)
    await session.send("textDocument/didChange", {"textDocument": {"uri": URI, **document}, "contentChanges": changes})
    assert session.server.documents.get(URI).text == text
    assert [each for each in session.told if "method" in each] == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "changes",
    [
        [{"range": {"start": PLACE}, "text": "b"}],
        [{"range": 5, "text": "b"}],
        [{"text": "b"}, {"range": [], "text": "b"}],
        [{"text": None}],
        None,
    ],
    ids=str,
)
async def test_a_change_of_a_place_that_is_not_known_is_never_taken_for_a_whole_text(session, changes):
    await session.begin(experimental={"dgReopen": True})
    await session.open(TEXT)
    document = {"uri": URI, "version": 2}
    await session.send("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
    assert session.server.documents.get(URI) is None
    assert session.told[-1]["method"] == "dg/reopen"
    await session.send("textDocument/didChange", {"textDocument": {"uri": URI}, "contentChanges": [{"text": "b"}]})
    assert session.server.documents.get(URI).text == "b"


@pytest.mark.asyncio
async def test_of_a_document_that_is_opened_its_name_and_text_are_needed(session):
    await session.begin()
    for number, more in enumerate(
        ({}, {"version": None}, {"version": 1.0, "languageId": 5}, {"languageId": None, "version": "x"})
    ):
        document = {"uri": f"file:///w/{number}.py", "text": TEXT, **more}
        await session.send("textDocument/didOpen", {"textDocument": document})
        assert session.server.documents.get(document["uri"]).text == TEXT
    await session.send("textDocument/didOpen", {"textDocument": {"uri": "file:///w/9.py", "text": None}})
    assert session.server.documents.get("file:///w/9.py") is None


@pytest.mark.asyncio
async def test_whole_numbers_may_be_written_as_floats(session):
    await session.begin(enabled=True)
    await session.open(TEXT)
    span = {"start": {"line": 0.0, "character": 0}, "end": {"line": 0, "character": 5.0}}
    params = {"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": [], "triggerKind": 1.0}}
    await session.send("textDocument/codeAction", params, id=3.0)
    while not (found := [each for each in session.told if each.get("id") == 3]):
        await session.send("$/setTrace", {})
    assert [each["kind"] for each in found[0]["result"]] == ["refactor.rewrite"]


@pytest.mark.asyncio
async def test_a_client_that_counts_no_versions_gets_edits_for_none(session):
    await session.begin()
    await session.open(TEXT)
    await session.send("textDocument/didChange", {"textDocument": {"uri": URI}, "contentChanges": [{"text": "b"}]})
    assert session.server.documents.get(URI).version is None


@pytest.mark.asyncio
async def test_cells_are_taken_whatever_else_is_said_of_them(session):
    await session.begin(notebookDocument={"synchronization": {}})
    cells = [
        {"kind": 2.0, "document": "cell:0", "metadata": 5, "executionSummary": {"executionOrder": -1, "success": 3}},
        {"kind": 2, "document": "cell:1", "executionSummary": None},
    ]
    notebook = {"uri": "file:///w/n.ipynb", "notebookType": None, "version": None, "metadata": [], "cells": cells}
    texts = [{"uri": f"cell:{at}", "text": TEXT, "languageId": "python"} for at in range(2)]
    await session.send("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": [*texts, 5]})
    assert session.server.documents.uris() == ["cell:0", "cell:1"]
    change = {
        "metadata": 7,
        "cells": {
            "data": None,
            "structure": None,
            "textContent": [{"document": {"uri": "cell:0"}, "changes": [{"text": "b"}]}],
        },
    }
    told = {"notebookDocument": {"uri": "file:///w/n.ipynb"}, "change": change}
    await session.send("notebookDocument/didChange", told)
    assert session.server.documents.get("cell:0").text == "b"
    await session.send("notebookDocument/didClose", {"notebookDocument": {"uri": "file:///w/n.ipynb"}})
    assert session.server.documents.uris() == []


@pytest.mark.asyncio
async def test_folders_are_known_by_their_uri(session):
    await session.begin()
    added = [{"uri": "file:///w", "name": None}, {"uri": 5}, 7, {"uri": "file:///v", "name": 7}]
    await session.send("workspace/didChangeWorkspaceFolders", {"event": {"added": added}})
    assert [str(each) for each in session.server.configuration.folders] == ["/w", "/v"]


@pytest.mark.asyncio
async def test_what_a_switch_is_for_is_never_left_out(session):
    await session.begin(enabled=True)
    assert (await answer(session, "dg/setEnabled", {"enabled": False, "language": 5}))["code"] == -32602
    assert session.server.configuration.switched_on


@pytest.mark.asyncio
@pytest.mark.parametrize("result", [None, {}, True, 5, "done", []])
async def test_to_a_question_that_needs_no_answer_any_is_one(session, result):
    await session.begin()
    asked = asyncio.ensure_future(session.server.client_register_capability_async(RegistrationParams(registrations=[])))
    await asyncio.sleep(0)
    session.server.rpc.take({"jsonrpc": "2.0", "id": session.told[-1]["id"], "result": result})
    await asyncio.wait_for(asked, 5)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("result", "applied"),
    [
        ({"applied": True, "failedChange": "x", "failureReason": 5}, True),
        ({"applied": True, "more": [1]}, True),
        ({"applied": False, "failedChange": -1.5}, False),
    ],
    ids=str,
)
async def test_an_answer_counts_by_what_is_needed_of_it(session, result, applied):
    await session.begin()
    edit = ApplyWorkspaceEditParams(edit=WorkspaceEdit())
    asked = asyncio.ensure_future(session.server.workspace_apply_edit_async(edit))
    await asyncio.sleep(0)
    id_ = session.told[-1]["id"]
    session.server.rpc.take({"jsonrpc": "2.0", "id": id_, "result": result})
    assert (await asyncio.wait_for(asked, 5)).applied is applied
