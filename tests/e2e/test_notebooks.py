"""Notebooks in a real server: what is suggested in a cell knows the cells around it, and lands in that cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from lsprotocol.types import Range

from dg_lsp.documents.ipython import without_magics
from dg_lsp.documents.positions import Lines, position_at, span_of
from tests.e2e.window import CLIENTS, Window, _converter, until, window
from tests.engine.processes import home, running

pytestmark = pytest.mark.asyncio

PATIENT = {"inline": {"deadline_ms": 20_000}}
CODE, PROSE = 2, 1
OTHER = ("radius = 3", "# Boxes", "%cd ..\nwidth = 4", "area = ", "print(area)")


class Notebook:
    """A notebook in a window: cells with texts, by their places."""

    def __init__(self, held: Window, uri: str = "file:///w/n.ipynb", cell: str = "cell:/{at}") -> None:
        self.held, self.uri, self._cell = held, uri, cell
        self.texts: list[str] = []

    def open(self, *texts: str, prose: Sequence[int] = ()) -> Notebook:
        self.texts = list(texts)
        self.held.notify(
            "notebookDocument/didOpen",
            {
                "notebookDocument": {
                    "uri": self.uri,
                    "notebookType": "jupyter-notebook",
                    "version": 1,
                    "cells": [
                        {"kind": PROSE if at in prose else CODE, "document": self.name(at)} for at in range(len(texts))
                    ],
                },
                "cellTextDocuments": [
                    {
                        "uri": self.name(at),
                        "languageId": "markdown" if at in prose else "python",
                        "version": 1,
                        "text": text,
                    }
                    for at, text in enumerate(texts)
                ],
            },
        )
        return self

    def name(self, at: int) -> str:
        return self._cell.format(at=at)

    def type(self, at: int, text: str) -> None:
        """At the end of a cell."""
        end = self._position(self.texts[at], len(self.texts[at]))
        self.texts[at] += text
        change = {"range": {"start": end, "end": end}, "text": text}
        document = {"uri": self.name(at), "version": 2}
        self.change(textContent=[{"document": document, "changes": [change]}])

    def change(self, **cells: Any) -> None:
        notebook = {"uri": self.uri, "version": 2}
        self.held.notify("notebookDocument/didChange", {"notebookDocument": notebook, "change": {"cells": cells}})

    async def completed(self, at: int, cursor: int | None = None, *, invoked: bool = True) -> list[str]:
        """The texts that a cell would have with each suggestion taken, by the ranges that came."""
        text = self.texts[at]
        position = self._position(text, len(text) if cursor is None else cursor)
        answer = await self.held.request(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": self.name(at)},
                "position": position,
                "context": {"triggerKind": 1 if invoked else 2},
            },
        )
        found: list[str] = []
        for item in (answer or {}).get("items", ()):
            where = _converter.structure(item["range"], Range)
            start, end = span_of(Lines(text), where, self.held.encoding)
            found.append(text[:start] + item["insertText"] + text[end:])
        return found

    def _position(self, text: str, offset: int) -> Any:
        return _converter.unstructure(position_at(Lines(text), offset, self.held.encoding))


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_name_of_the_first_cell_is_used_in_a_later_one(shared, client):
    async with window(shared, client, options=PATIENT) as held:
        await until_it_is(Notebook(held).open("side = 2", "area = ", "print(area)"), 1, "area = side * side")
        other = Notebook(held, "file:///w/other.ipynb", "vscode-notebook-cell:/w/other.ipynb#W{at}")
        await until_it_is(other.open(*OTHER, prose=[1]), 3, "area = radius * width")


async def test_a_change_above_and_a_move_count_for_the_next_suggestion(shared):
    async with window(shared, options=PATIENT) as held:
        cells = Notebook(held).open("side = 2", "area = ", "print(area)")
        assert await cells.completed(1) == ["area = side * side"]
        other = [{"kind": PROSE if at == 11 else CODE, "document": cells.name(at)} for at in (10, 11, 12)]
        documents = [
            {"uri": cells.name(at), "languageId": "markdown" if at == 11 else "python", "version": 1, "text": text}
            for at, text in zip((10, 11, 12), OTHER, strict=False)
        ]
        array = {"start": 0, "deleteCount": 1, "cells": other}
        cells.change(structure={"array": array, "didOpen": documents, "didClose": [{"uri": cells.name(0)}]})
        await until_it_is(cells, 1, "area = radius * width")


async def test_typing_along_in_a_cell_needs_no_model_and_a_change_above_does(shared):
    async with window(shared, options=PATIENT) as held:
        cells = Notebook(held).open("side = 2", "area = ", "print(area)")
        assert await cells.completed(1) == ["area = side * side"]
        asked = (await held.counts())["sent"]
        cells.type(1, "side")
        assert await cells.completed(1, invoked=False) == ["area = side * side"]
        assert (await held.counts())["sent"] == asked
        cells.type(0, "\n")
        assert await cells.completed(1, invoked=False) == ["area = side * side"]
        assert (await held.counts())["sent"] == asked + 1


async def test_what_is_kept_from_the_model_is_so_by_the_notebook_s_path_and_so_are_its_settings(shared, tmp_path):
    (tmp_path / ".dgignore").write_text("private.ipynb\n")
    async with window(shared, folders=[tmp_path], options=PATIENT) as held:
        cells = ("side = 2", "area = ", "print(area)")
        for at, name in enumerate(("private.ipynb", ".env.ipynb", "seen.ipynb")):
            (tmp_path / name).touch()
            opened = Notebook(held, (tmp_path / name).as_uri(), f"cell:/{at}-{{at}}").open(*cells)
            off = (await held.status(uri=opened.name(1)))["document"]["off"]
            assert off.startswith("The document is excluded from the model") == (name != "seen.ipynb")
            assert await opened.completed(1) == ([] if off else ["area = side * side"])
        await held.request("dg/setEnabled", {"enabled": False, "folder": tmp_path.as_uri()})
        assert await opened.completed(1) == []


async def test_magics_are_nothing_to_mend_and_are_left_as_they_are_where_something_is():
    broken, whole = "%cd ..\nside = (1\n!ls {side}\n", "%cd ..\nside = (1)\n!ls {side}\n"
    with home() as place, running(place, "--model", place.oracle(f"▮{without_magics(whole)}▮")):
        async with window(place, "emacs", options=PATIENT) as held:
            cells = Notebook(held).open("%matplotlib inline\nx = !ls\n%timeit x\n", broken)
            fixed = [await run(held, "dg.fix", uri=cells.name(at)) for at in range(2)]
            assert fixed[0]["candidates"] == []
            (best, *_) = fixed[1]["candidates"]
            assert best["text"] == whole
            (change,) = best["edit"]["documentChanges"]
            assert change["textDocument"]["uri"] == cells.name(1)
            places = [(each["range"]["start"], each["newText"]) for each in change["edits"]]
            assert places == [({"line": 1, "character": 9}, ")")]


async def test_the_bundled_model_uses_names_of_the_first_cell_in_a_later_one():
    # Cells of the other notebooks are not what is asked for here.
    options = {"inline": {"threshold": 0, "deadline_ms": 60_000}, "context": {"workspace": False, "enabled": False}}
    used = {True: 0, False: 0}
    with home() as place:
        async with window(place, options=options, model="bundled") as held:
            for at, name in enumerate(NAMES):
                for known in used:
                    first = f"import math\n\n{name} = [12, 13, 14]" if known else "import math"
                    line = f"print({name[: len(name) // 2]}"
                    cells = Notebook(held, f"file:///w/{at}{known}.ipynb", f"cell:/{at}{known}-{{at}}")
                    best = await cells.open(first, "## The values", line, prose=[1]).completed(2)
                    used[known] += any(text.startswith(f"print({name}") for text in best[:1])
    # What it makes of them is the model's; that they are seen at all is ours.
    assert used[True] > used[False] == 0


NAMES = ("measurements", "temperatures", "observations", "categories", "coordinates", "customers")


async def run(held: Window, command: str, **given: Any) -> Any:
    return await held.request("workspace/executeCommand", {"command": command, "arguments": [given]})


async def until_it_is(cells: Notebook, at: int, wanted: str) -> None:
    async def holds() -> bool:
        return await cells.completed(at) == [wanted]

    await until(holds, wanted)
