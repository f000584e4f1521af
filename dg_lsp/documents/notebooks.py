"""Notebooks: which cells they have, in which order, and what the others say around each of them.

A cell is a document, with positions of its own; what the model sees of the others goes before and behind its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.common.errors import EngineError

MARKUP_CHARS = 400
"""Of a cell of prose; its first lines say what the code behind it is about."""
_COMMENT: Mapping[str, str] = {
    language: mark
    for mark, languages in {
        "#": "ipython python r julia ruby perl shellscript powershell elixir",
        "//": "javascript typescript rust go c cpp csharp fsharp java kotlin scala groovy swift php dart",
        "--": "sql haskell lua",
    }.items()
    for language in languages.split()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookCell:
    uri: str
    is_code: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands in other cells, above and below one; empty around a document of its own."""

    above: str = ""
    below: str = ""
    uris: frozenset[str] = frozenset()
    """The cells whose text it is."""


NOTHING_AROUND = Around()


class UnknownCells(EngineError):
    """A change that can't be one to a notebook's cells as they are known here."""


class Notebooks:
    """The order of cells. `read(uri)` is the language of a cell's text, and the text; None where nobody knows it.

    For the event loop alone: in another thread, what stood around a cell could be kept after it changed.
    """

    def __init__(self, read: Callable[[str], tuple[str, str] | None]) -> None:
        self._read = read
        self._cells: dict[str, list[NotebookCell]] = {}
        self._holding: dict[str, str] = {}
        """The notebook of each cell, also of one that was taken out and is open still."""
        self._around: dict[str, tuple[str, Around]] = {}
        """For each notebook, what stands around the cell that was asked for last."""

    def open(self, notebook: str, cells: Sequence[NotebookCell]) -> None:
        self.close(notebook)
        self._cells[notebook] = []
        self.splice(notebook, 0, 0, cells)

    def splice(self, notebook: str, start: int, count: int, cells: Sequence[NotebookCell]) -> None:
        """Put cells in the place of others. Raises UnknownCells where there are no such."""
        held = self._cells[notebook]
        if not 0 <= start <= start + count <= len(held):
            raise UnknownCells(
                f"{count} cells from the {start}th on were replaced in {notebook}, which has {len(held)} here."
            )
        held[start : start + count] = cells
        self._holding |= dict.fromkeys((cell.uri for cell in cells), notebook)
        self._around.pop(notebook, None)

    def renew(self, notebook: str, cells: Sequence[NotebookCell]) -> bool:
        """Take what cells are now, each in its place; whether that is news: a cell that ran is what it was."""
        now = {cell.uri: cell for cell in cells}
        before = self._cells[notebook]
        self._cells[notebook] = [now.get(cell.uri, cell) for cell in before]
        if self._cells[notebook] == before:
            return False
        self._around.pop(notebook, None)
        return True

    def close(self, notebook: str) -> None:
        self._cells.pop(notebook, None)
        self._around.pop(notebook, None)
        self._holding = {uri: holding for uri, holding in self._holding.items() if holding != notebook}

    def forget(self, uri: str) -> None:
        """A cell's document was closed; one that is in its notebook still may be opened again."""
        self.rewritten(uri)
        if all(cell.uri != uri for cell in self._cells.get(self.holding(uri), ())):
            self._holding.pop(uri, None)

    def rewritten(self, uri: str) -> None:
        """A cell's document is another, or none any more."""
        self._around.pop(self.holding(uri), None)

    def changed(self, uri: str) -> None:
        """A cell's text is another: what stands around others is, too, but what stands around itself is not."""
        held = self._around.get(self.holding(uri))
        if held and held[0] != uri:
            self.rewritten(uri)

    def is_open(self, notebook: str) -> bool:
        return notebook in self._cells

    def cells(self, notebook: str) -> Sequence[str]:
        """The cells that are in a notebook, or were, as long as their documents are open."""
        return [uri for uri, holding in self._holding.items() if holding == notebook]

    def holding(self, uri: str) -> str:
        """The notebook that a cell is in; empty for what is no cell."""
        return self._holding.get(uri, "")

    def around(self, uri: str) -> Around:
        notebook = self._holding.get(uri)
        if notebook is None:
            return NOTHING_AROUND
        held = self._around.get(notebook)
        if held is None or held[0] != uri:
            held = self._around[notebook] = uri, self._made(uri, self._cells.get(notebook, ()))
        return held[1]

    def _made(self, uri: str, cells: Sequence[NotebookCell]) -> Around:
        at = next((at for at, cell in enumerate(cells) if cell.uri == uri), None)
        read = self._read(uri)
        if at is None or read is None:
            return NOTHING_AROUND
        above, below = ([*self._parts(read[0], cells[at].is_code, part)] for part in (cells[:at], cells[at + 1 :]))
        behind = "".join(text for _, text in below).rstrip()
        return Around(
            above="".join(text for _, text in above),
            below=f"\n\n{behind}\n" if behind else "",
            uris=frozenset(each for each, _ in above + below),
        )

    def _parts(self, language: str, is_code: bool, cells: Sequence[NotebookCell]) -> Iterator[tuple[str, str]]:
        """Cells as parts of a text in a language: what is in it, a blank line behind each, and prose as comments."""
        for cell in cells:
            read = self._read(cell.uri)
            if read is None or not read[1].strip():
                continue
            if (read[0], cell.is_code) == (language, is_code):
                yield cell.uri, f"{read[1].rstrip()}\n\n"
            elif is_code and not cell.is_code and language in _COMMENT:
                yield cell.uri, _as_comment(read[1], _COMMENT[language])


def _as_comment(text: str, mark: str) -> str:
    told = text.strip()[:MARKUP_CHARS].splitlines()
    return "".join(f"{mark} {line.lstrip('# ')}".rstrip() + "\n" for line in told)
