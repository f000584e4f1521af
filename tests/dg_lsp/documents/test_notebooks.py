"""Cells: their order, their texts, and what stands around each, against a model of the text."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from lsprotocol.types import TextDocumentContentChangePartial, TextDocumentItem

from dg_lsp.documents.documents import Documents, Policy
from dg_lsp.documents.gap import gap_at, text_window
from dg_lsp.documents.ipython import language_of, without_magics
from dg_lsp.documents.notebooks import MARKUP_CHARS, NotebookCell, UnknownCells
from dg_lsp.documents.positions import Lines, offset_at, position_at, range_of

NOTEBOOK = "file:///w/n.ipynb"
TEXTS = ("", "a = 1", "b = '😋'\n", "字 = a\r\nc = 3\r\n", "%time\nd = 4\n", "if a:\n    e = 5\n\n", "%%bash\nls", "\n")
OPERATIONS = 1000


def opened(*texts: str, kinds: str = "", languages: dict[int, str] | None = None) -> Documents:
    """A notebook with these cells, by their numbers; `kinds`: "m" for prose, "c" for code."""
    documents = Documents()
    kinds = kinds or "c" * len(texts)
    documents.open_notebook(
        NOTEBOOK, [NotebookCell(uri=f"cell:{at}", is_code=kind == "c") for at, kind in enumerate(kinds)]
    )
    for at, (text, kind) in enumerate(zip(texts, kinds, strict=True)):
        language = (languages or {}).get(at, "python" if kind == "c" else "markdown")
        documents.open(TextDocumentItem(uri=f"cell:{at}", language_id=language, version=1, text=text))
    return documents


def shown(documents: Documents, at: int, cursor: int) -> tuple[str, str]:
    snapshot = documents.get(f"cell:{at}")
    assert snapshot
    return text_window(gap_at(snapshot, cursor))


def typed(documents: Documents, uri: str, start: int, end: int, text: str) -> None:
    held = documents.get(uri)
    assert held
    event = TextDocumentContentChangePartial(range=range_of(held.lines, start, end, documents.encoding), text=text)
    assert documents.change(uri, held.version + 1, [event])


def test_the_cells_above_are_the_text_before_and_those_below_the_text_after():
    documents = opened("import os\n", "x = 1", "print(x)")
    assert shown(documents, 1, 4) == ("import os\n\nx = ", "1\n\nprint(x)\n")
    assert shown(documents, 0, 0) == ("", "import os\n\n\nx = 1\n\nprint(x)\n")


def test_prose_is_a_comment_in_code_code_is_not_in_prose_and_other_languages_are_left_out():
    documents = opened("# Load\n\n" + "x" * 1000, "a = 1", "%%sql\nselect 1", "SELECT 2", "b", "more", kinds="mccccm")
    documents.open(TextDocumentItem(uri="cell:3", language_id="sql", version=1, text="SELECT 2"))
    before, after = shown(documents, 4, 1)
    prose = f"Load\n#\n# {'x' * (MARKUP_CHARS - 8)}\n"
    assert before == f"# {prose}a = 1\n\nb"
    assert after == "\n\n# more\n"
    assert shown(documents, 5, 4)[0].endswith("x\n\nmore")
    assert shown(documents, 2, 14)[0].endswith("x\n%%sql\nselect 1")
    assert shown(documents, 2, 14)[1] == "\n\nSELECT 2\n\n-- more\n"


def test_typing_changes_nothing_of_what_stands_around_and_makes_nothing_anew():
    documents = opened("a = 1\n", "b = 2\n", "", "c = 3\n")
    around = documents.get("cell:2").around
    assert around.above == "a = 1\n\nb = 2\n\n"
    for at, key in enumerate("print(a)"):
        typed(documents, "cell:2", at, at, key)
        assert documents.get("cell:2").around is around
        assert shown(documents, 2, at + 1) == (around.above + "print(a)"[: at + 1], around.below)
    typed(documents, "cell:0", 0, 1, "z")
    assert documents.get("cell:2").around.above == "z = 1\n\nb = 2\n\n"


def test_the_start_of_what_is_shown_stays_in_a_long_notebook():
    documents = opened("some = code\n" * 20_000, "y = 1\n" * 10)
    one, _ = shown(documents, 1, 30)
    typed(documents, "cell:1", 30, 30, "x")
    two, _ = shown(documents, 1, 31)
    assert two == f"{one}x"
    assert one.startswith("some = code\n")


def test_settings_and_exclusion_go_by_the_notebook_whatever_a_cell_is_called():
    asked = list[str]()

    def policy(uri: str, language: str) -> Policy:
        asked.append(uri)
        return Policy(may_show=uri != NOTEBOOK or len(asked) > 2)

    documents = Documents(policy=policy)
    documents.open(TextDocumentItem(uri="cell:1", language_id="python", version=1, text="early = 1"))
    documents.open_notebook(
        NOTEBOOK, [NotebookCell(uri="cell:0", is_code=True), NotebookCell(uri="cell:1", is_code=True)]
    )
    assert not documents.get("cell:1").policy.may_show
    documents.open(TextDocumentItem(uri="cell:0", language_id="python", version=1, text="x = 1"))
    documents.renew(NOTEBOOK)
    assert asked == ["cell:1", NOTEBOOK, NOTEBOOK, NOTEBOOK, NOTEBOOK]
    assert {snapshot.file_uri for snapshot in documents.others("")} == {NOTEBOOK}
    assert all(snapshot.policy.may_show for snapshot in documents.others(""))


@pytest.mark.parametrize(("start", "count"), [(3, 0), (0, 3), (-1, 1), (1, -1), (2, 1)])
def test_cells_that_are_not_there_are_not_replaced(start, count):
    documents = opened("a", "b")
    with pytest.raises(UnknownCells, match=NOTEBOOK):
        documents.splice_cells(NOTEBOOK, start, count, [])
    assert shown(documents, 1, 0) == ("a\n\n", "b")


def test_nothing_is_kept_of_a_notebook_that_is_closed():
    documents = opened(*("x = 1\n" for _ in range(20)))
    for at in range(20):
        typed(documents, f"cell:{at}", 0, 0, "y")
        assert shown(documents, at, 0)
    documents.notebooks.close(NOTEBOOK)
    for at in range(20):
        documents.close(f"cell:{at}")
    assert documents.others("") == []
    assert not any(vars(documents.notebooks)[kept] for kept in ("_cells", "_holding", "_around"))


@dataclass
class _Held:
    """A cell as the model of the text knows it."""

    uri: str
    is_code: bool
    language: str
    text: str

    @property
    def content_language(self) -> str:
        return language_of(self.text) if self.language == "python" else self.language

    @property
    def code(self) -> str:
        return without_magics(self.text) if self.content_language == "ipython" else self.text


class _Model:
    """Does to documents, and to plain lists, what somebody does to a notebook."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.documents = Documents(self.random.choice(["utf-8", "utf-16", "utf-32"]))
        self.cells: list[_Held] = []
        self.made = 0
        self.documents.open_notebook(NOTEBOOK, [])

    def step(self) -> None:
        steps = (self.insert, self.delete, self.move, self.retype, self.turn, self.type, self.type, self.type)
        self.random.choice(steps if self.cells else (self.insert,))()

    def splice(self, start: int, count: int, new: list[_Held]) -> None:
        cells = [NotebookCell(uri=each.uri, is_code=each.is_code) for each in new]
        self.documents.splice_cells(NOTEBOOK, start, count, cells)
        self.cells[start : start + count] = new

    def open(self, cell: _Held) -> None:
        item = TextDocumentItem(uri=cell.uri, language_id=cell.language, version=1, text=cell.text)
        self.documents.open(item)

    def insert(self) -> None:
        new = list[_Held]()
        for _ in range(self.random.randint(1, 3)):
            self.made += 1
            is_code, text = self.random.random() < 0.8, self.random.choice(TEXTS)
            language = self.random.choice(["python", "python", "r"]) if is_code else "markdown"
            new.append(_Held(f"cell:{self.made}", is_code, language, text))
        self.splice(self.random.randint(0, len(self.cells)), 0, new)
        for cell in new:
            self.open(cell)

    def delete(self) -> None:
        start = self.random.randrange(len(self.cells))
        count = self.random.randint(1, min(2, len(self.cells) - start))
        gone = self.cells[start : start + count]
        self.splice(start, count, [])
        for cell in gone:
            self.documents.close(cell.uri)

    def move(self) -> None:
        start = self.random.randrange(len(self.cells))
        part = self.cells[start : start + 4]
        moved = self.random.sample(part, len(part))
        if self.random.random() < 0.5:
            self.splice(start, len(part), moved)
        else:
            # Some clients take cells out first, and put them back then.
            self.splice(start, len(part), [])
            self.splice(self.random.randint(0, len(self.cells)), 0, moved)

    def retype(self) -> None:
        """From code to prose or back, as VS Code does: a document of its own, in the cell's place."""
        at = self.random.randrange(len(self.cells))
        old = self.cells[at]
        self.made += 1
        language = "markdown" if old.is_code else "python"
        new = _Held(f"cell:{self.made}", not old.is_code, language, old.text)
        self.splice(at, 1, [new])
        self.open(new)
        self.documents.close(old.uri)

    def turn(self) -> None:
        """The same, as other clients do: the document stays, its kind is told, and it is opened anew."""
        cell = self.random.choice(self.cells)
        cell.is_code = not cell.is_code
        self.documents.notebooks.renew(NOTEBOOK, [NotebookCell(uri=cell.uri, is_code=cell.is_code)])
        cell.language = "python" if cell.is_code else "markdown"
        self.open(cell)

    def type(self) -> None:
        cell = self.random.choice(self.cells)
        start, end = sorted(self.random.choices(_places(cell.text), k=2))
        new = self.random.choice(["x", "\n", "", "%time\n", "😋", *TEXTS])
        typed(self.documents, cell.uri, start, end, new)
        cell.text = cell.text[:start] + new + cell.text[end:]

    def around(self, at: int) -> tuple[str, str]:
        above, below = (self._part(self.cells[at], part) for part in (self.cells[:at], self.cells[at + 1 :]))
        return above, f"\n\n{below.rstrip()}\n" if below.rstrip() else ""

    def _part(self, here: _Held, cells: list[_Held]) -> str:
        part = ""
        for cell in cells:
            if not cell.text.strip():
                continue
            if cell.is_code == here.is_code and cell.content_language == here.content_language:
                part += cell.code.rstrip() + "\n\n"
            elif here.is_code and not cell.is_code and here.content_language in ("ipython", "r", "shellscript"):
                part += "".join(f"# {line.lstrip('# ')}".rstrip() + "\n" for line in cell.text.strip().splitlines())
        return part


def _places(text: str) -> list[int]:
    """Where a cursor can be: not inside of a line break."""
    return [at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n" or at == 0]


@pytest.mark.parametrize("seed", range(4))
def test_cells_keep_their_texts_and_places_through_a_thousand_changes(seed):
    model = _Model(seed)
    compared = 0
    for _ in range(OPERATIONS):
        model.step()
        for at in model.random.sample(range(len(model.cells)), min(3, len(model.cells))):
            cell, held = model.cells[at], model.documents.get(model.cells[at].uri)
            assert held
            assert (held.text, held.notebook) == (cell.text, NOTEBOOK)
            above, below = model.around(at)
            assert (held.around.above, held.around.below) == (above, below)
            cursor = model.random.choice(_places(cell.text))
            position = position_at(Lines(cell.text), cursor, model.documents.encoding)
            assert offset_at(held.lines, position, model.documents.encoding) == cursor
            before, after = text_window(gap_at(held, cursor))
            assert (len(before), len(after)) == (len(above) + cursor, len(cell.text) - cursor + len(below))
            assert before.startswith(above)
            assert after.endswith(below)
            compared += 1
        assert {snapshot.uri for snapshot in model.documents.others("")} == {cell.uri for cell in model.cells}
    assert compared > OPERATIONS
