"""Notebooks as a client tells of them: what is well formed arrives, what is not costs no more than asking again."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from dg_lsp.config.exclusion import Exclusions
from dg_lsp.documents.gap import gap_at, text_window
from dg_lsp.documents.notebooks import NOTHING_AROUND, Notebooks
from tests.dg_lsp.handlers.test_server import Session

pytestmark = pytest.mark.asyncio

NOTEBOOK = "file:///w/n.ipynb"
REOPEN = {"jsonrpc": "2.0", "method": "dg/reopen", "params": {"uri": NOTEBOOK}}


def cell(at: int, kind: int = 2) -> dict[str, Any]:
    # As VS Code tells of it.
    metadata = {"execution_count": None, "metadata": {}, "id": f"c{at}"}
    return {"kind": kind, "document": f"cell:{at}", "metadata": metadata}


def item(at: int, text: str, language: str = "python") -> dict[str, Any]:
    return {"uri": f"cell:{at}", "languageId": language, "version": 1, "text": text}


class Notebook(Session):
    """A session that has a notebook open."""

    async def begin(self, *texts: str, reopens: bool = True) -> None:
        await super().begin(experimental={"dgReopen": reopens}, notebookDocument={"synchronization": {}})
        await self.open_notebook(*texts)

    async def open_notebook(self, *texts: str) -> None:
        cells = [cell(at) for at in range(len(texts))]
        notebook = {"uri": NOTEBOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
        notebook["metadata"] = {"nbformat": 4, "metadata": {"language_info": {"name": "python"}}, "cells": []}
        documents = [item(at, text) for at, text in enumerate(texts)]
        await self.send("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": documents})

    async def change_cells(self, uri: str = NOTEBOOK, **cells: Any) -> None:
        await self.send(
            "notebookDocument/didChange",
            {"notebookDocument": {"uri": uri, "version": 2}, "change": {"cells": cells}},
        )

    async def splice(self, start: int, count: int, *cells: dict[str, Any], **documents: Any) -> None:
        array = {"start": start, "deleteCount": count, "cells": list(cells)}
        await self.change_cells(structure={"array": array, **documents})

    async def rewrite(self, at: int, text: str) -> None:
        document = {"uri": f"cell:{at}", "version": 2}
        await self.change_cells(textContent=[{"document": document, "changes": [{"text": text}]}])

    async def close_notebook(self, count: int) -> None:
        cells = [{"uri": f"cell:{at}"} for at in range(count)]
        await self.send(
            "notebookDocument/didClose", {"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": cells}
        )

    def shown(self, at: int) -> tuple[str, str]:
        """What the engine would see with the cursor at the end of a cell."""
        snapshot = self.server.documents.get(f"cell:{at}")
        assert snapshot
        return text_window(gap_at(snapshot, len(snapshot.text)))

    def said(self) -> list[Any]:
        return [each for each in self.told if "method" in each]


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


async def test_cells_are_opened_changed_moved_inserted_deleted_and_closed(notebook):
    await notebook.begin("a = 1", "b = 2", "c = 3")
    assert notebook.shown(1) == ("a = 1\n\nb = 2", "\n\nc = 3\n")
    await notebook.rewrite(0, "a = 10")
    assert notebook.shown(1) == ("a = 10\n\nb = 2", "\n\nc = 3\n")
    await notebook.splice(0, 3, cell(2), cell(0), cell(1))
    assert notebook.shown(1) == ("c = 3\n\na = 10\n\nb = 2", "")
    await notebook.splice(3, 0, cell(3, kind=1), didOpen=[item(3, "Prose", "markdown")])
    assert notebook.shown(1) == ("c = 3\n\na = 10\n\nb = 2", "\n\n# Prose\n")
    await notebook.change_cells(data=[cell(0, kind=1)])
    assert notebook.shown(1) == ("c = 3\n\n# a = 10\nb = 2", "\n\n# Prose\n")
    await notebook.splice(0, 1, didClose=[{"uri": "cell:2"}])
    assert notebook.shown(1) == ("# a = 10\nb = 2", "\n\n# Prose\n")
    await notebook.send("notebookDocument/didSave", {"notebookDocument": {"uri": NOTEBOOK}})
    await notebook.close_notebook(4)
    assert notebook.server.documents.uris() == []
    assert notebook.said() == []


async def test_a_change_of_everything_at_once_is_taken_in_the_protocol_s_order(notebook):
    await notebook.begin("a", "b")
    await notebook.change_cells(
        structure={
            "array": {"start": 1, "deleteCount": 1, "cells": [cell(2)]},
            "didOpen": [item(2, "c")],
            "didClose": [{"uri": "cell:1"}],
        },
        data=[cell(2, kind=1)],
        textContent=[{"document": {"uri": "cell:2", "version": 2}, "changes": [{"text": "d"}]}],
    )
    assert notebook.shown(0) == ("a", "\n\n# d\n")
    await notebook.change_cells(data=[cell(2)])
    assert notebook.shown(0) == ("a", "\n\nd\n")
    assert notebook.server.documents.get("cell:1") is None


async def test_a_cell_that_becomes_one_of_another_language_stays(notebook):
    await notebook.begin("a", "b")
    await notebook.splice(1, 1, cell(1), didOpen=[item(1, "SELECT 1", "sql")], didClose=[{"uri": "cell:1"}])
    assert notebook.server.documents.get("cell:1").text == "SELECT 1"
    assert notebook.server.documents.get("cell:1").language == "sql"


@pytest.mark.parametrize(
    "array", [{"start": 3, "deleteCount": 0}, {"start": 0, "deleteCount": 9}, {"start": -1}, {}, 3]
)
async def test_a_change_of_cells_that_can_t_be_costs_the_notebook_until_it_comes_again(notebook, array, caplog):
    await notebook.begin("a", "b")
    await notebook.change_cells(structure={"array": {"deleteCount": 0, **array} if isinstance(array, dict) else array})
    assert notebook.told[-1] == REOPEN
    assert notebook.server.documents.get("cell:0") is None
    await notebook.splice(0, 9)
    await notebook.rewrite(1, "all of it")
    assert [each for each in notebook.told if each == REOPEN] == [REOPEN]
    assert notebook.shown(1) == ("all of it", "")
    await notebook.close_notebook(2)
    await notebook.open_notebook("a", "b")
    assert notebook.shown(1) == ("a\n\nb", "")
    assert "did_change failed" not in caplog.text


@pytest.mark.parametrize(
    "params",
    [
        {"change": {"cells": {"textContent": 3}}},
        {"change": {"cells": {"structure": {"array": {"start": 0, "deleteCount": 0}, "didOpen": [{}]}}}},
        {"change": {"cells": {"data": [{"kind": "code", "document": "cell:0"}]}}},
        {"change": None},
        {},
    ],
)
async def test_a_change_that_is_malformed_is_said_with_the_way_out_where_the_editor_can_t_send_again(notebook, params):
    await notebook.begin("a", "b", reopens=False)
    await notebook.send("notebookDocument/didChange", {"notebookDocument": {"uri": NOTEBOOK, "version": 2}, **params})
    (told,) = notebook.said()
    assert told["params"]["message"] == (f"A change to {NOTEBOOK} could not be read: close and reopen the document.")
    assert notebook.server.documents.uris() == []


async def test_a_notebook_that_nobody_opened_changes_nothing_and_its_cells_are_documents_of_their_own(notebook):
    await notebook.begin()
    await notebook.open("a = 1", "vscode-notebook-cell:/w/n.ipynb#W0")
    await notebook.change_cells(uri="file:///w/other.ipynb", structure={"array": {"start": 7, "deleteCount": 7}})
    await notebook.change("x", "vscode-notebook-cell:/w/n.ipynb#W0")
    assert notebook.server.documents.get("vscode-notebook-cell:/w/n.ipynb#W0").text == "xa = 1"
    assert notebook.said() == []


async def test_one_cell_whose_change_was_lost_is_asked_for_and_keeps_its_place(notebook):
    await notebook.begin("a", "b", "c")
    notebook.server.lose("cell:1")
    assert notebook.told[-1]["params"] == {"uri": "cell:1"}
    assert notebook.shown(2) == ("a\n\nc", "")
    await notebook.send("textDocument/didClose", {"textDocument": {"uri": "cell:1"}})
    await notebook.send("textDocument/didOpen", {"textDocument": item(1, "b")})
    assert notebook.shown(2) == ("a\n\nb\n\nc", "")
    await notebook.rewrite(1, "z")
    assert notebook.shown(2) == ("a\n\nz\n\nc", "")


async def test_where_nobody_knows_what_was_lost_a_notebook_is_asked_for_once(notebook):
    await notebook.begin("a", "b", "c")
    await notebook.open("d")
    notebook.server.lose(None)
    assert [each["params"]["uri"] for each in notebook.said()] == [NOTEBOOK, "file:///w/a.py"]


async def test_to_lose_a_notebook_puts_nothing_together(notebook, monkeypatch):
    await notebook.begin(*("a = 1" for _ in range(300)))
    asked = list[str]()
    monkeypatch.setattr(Notebooks, "around", lambda _, uri: asked.append(uri) or NOTHING_AROUND)
    notebook.server.lose(NOTEBOOK)
    assert (notebook.server.documents.uris(), notebook.told[-1], asked) == ([], REOPEN, [])


async def test_files_are_looked_at_once_for_all_cells_and_not_for_each_key(notebook, monkeypatch):
    looked = list[str]()
    monkeypatch.setattr(Exclusions, "look", lambda self, uri, *_: looked.append(uri))
    await notebook.begin(*("a = 1" for _ in range(50)))
    ends_s = time.monotonic() + 30
    while not looked:
        assert time.monotonic() < ends_s
        await asyncio.sleep(0.01)
    for at in range(50):
        await notebook.rewrite(at, "b = 2")
        assert await notebook.server.projects.snapshot(f"cell:{at}")
    assert looked == [NOTEBOOK]


async def test_memory_is_let_go_when_cells_close(notebook):
    await notebook.begin()
    for _ in range(3):
        await notebook.open_notebook(*("x = 1" for _ in range(30)))
        for at in range(30):
            await notebook.rewrite(at, "y = 2")
            await notebook.server.projects.snapshot(f"cell:{at}")
        await notebook.close_notebook(30)
    server = notebook.server
    assert server.documents.others("") == []
    suggester = server.suggester
    assert not any(vars(suggester)[kept] for kept in ("_caches", "_edits", "_lanes", "_expected"))
    assert not any(vars(server.context)[kept] for kept in ("_names", "_choices"))
    assert server.projects._exclusions._reasons.keys() <= {NOTEBOOK}
