"""Notebooks: their cells, in order, and the text of the other cells around each.

A cell is a document with its own positions. The other cells' text goes before and after it when the model sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.common.errors import EngineError

MARKUP_CHARS = 400
"""Characters of a markup cell that the model sees: its first lines say what the code after it is about."""
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
    """The text of the other cells, above and below one; empty for a document that is no cell."""

    above: str = ""
    below: str = ""
    uris: frozenset[str] = frozenset()
    """The cells that the text is from."""


NOTHING_AROUND = Around()


class UnknownCells(EngineError):
    """A change that does not fit a notebook's cells as they are known here."""


class Notebooks:
    """The order of cells. `read(uri)` returns the language and the text of a cell, or None where it is unknown.

    For the event loop only: another thread could cache what is outdated.
    """

    def __init__(self, read: Callable[[str], tuple[str, str] | None]) -> None:
        self._read = read
        self._cells: dict[str, list[NotebookCell]] = {}
        self._holding: dict[str, str] = {}
        """The notebook of each cell, also of one that was removed and is still open."""
        self._around: dict[str, tuple[str, Around]] = {}
        """For each notebook, the text around the cell that was requested last."""

    def open(self, notebook: str, cells: Sequence[NotebookCell]) -> None:
        self.close(notebook)
        self._cells[notebook] = []
        self.splice(notebook, 0, 0, cells)

    def splice(self, notebook: str, start: int, count: int, cells: Sequence[NotebookCell]) -> None:
        """Replace cells by others. Raises UnknownCells where the range is invalid."""
        held = self._cells[notebook]
        if not 0 <= start <= start + count <= len(held):
            raise UnknownCells(
                f"{count} cells from the {start}th on were replaced in {notebook}, which has {len(held)} here."
            )
        held[start : start + count] = cells
        self._holding |= dict.fromkeys((cell.uri for cell in cells), notebook)
        self._around.pop(notebook, None)

    def renew(self, notebook: str, cells: Sequence[NotebookCell]) -> bool:
        """Update cells in place; return whether the kind of any changed."""
        now = {cell.uri: cell for cell in cells}
        before = self._cells[notebook]
        self._cells[notebook] = [now.get(cell.uri, cell) for cell in before]
        if self._cells[notebook] == before:
            return False
        self._around.pop(notebook, None)
        return True

    def close(self, notebook: str) -> None:
        """Forget a notebook: its cells are closed, or their order is unknown."""
        self._cells.pop(notebook, None)
        self._around.pop(notebook, None)
        self._holding = {uri: holding for uri, holding in self._holding.items() if holding != notebook}

    def forget(self, uri: str) -> None:
        """A cell's document was closed. A cell that is still in its notebook may be opened again."""
        self.rewritten(uri)
        if all(cell.uri != uri for cell in self._cells.get(self.holding(uri), ())):
            self._holding.pop(uri, None)

    def rewritten(self, uri: str) -> None:
        """A cell's document was replaced or closed."""
        self._around.pop(self.holding(uri), None)

    def changed(self, uri: str) -> None:
        """A cell's text changed: the text around other cells is outdated, that around itself is not."""
        held = self._around.get(self.holding(uri))
        if held and held[0] != uri:
            self.rewritten(uri)

    def is_open(self, notebook: str) -> bool:
        return notebook in self._cells

    def cells(self, notebook: str) -> Sequence[str]:
        """The URIs of the cells that are in a notebook, or were and are still open; none for anything else."""
        return [uri for uri, holding in self._holding.items() if holding == notebook]

    def holding(self, uri: str) -> str:
        """The notebook that a cell is in; empty for anything else."""
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
        after = "".join(text for _, text in below).rstrip()
        return Around(
            above="".join(text for _, text in above),
            below=f"\n\n{after}\n" if after else "",
            uris=frozenset(each for each, _ in above + below),
        )

    def _parts(self, language: str, is_code: bool, cells: Sequence[NotebookCell]) -> Iterator[tuple[str, str]]:
        """Cells as parts of one text: code in the language, each followed by a blank line, and markup as comments."""
        for cell in cells:
            read = self._read(cell.uri)
            if read is None or not read[1].strip():
                continue
            if (read[0], cell.is_code) == (language, is_code):
                yield cell.uri, f"{read[1].rstrip()}\n\n"
            elif is_code and not cell.is_code and language in _COMMENT:
                yield cell.uri, _as_comment(read[1], _COMMENT[language])


def _as_comment(text: str, mark: str) -> str:
    lines = text.strip()[:MARKUP_CHARS].splitlines()
    return "".join(f"{mark} {line.lstrip('# ')}".rstrip() + "\n" for line in lines)
