"""The documents an editor has open, as snapshots that never change.

Out-of-order and impossible messages are expected: a change to an unknown document is refused, a range outside of the
text is mapped into it (see `positions`). A document whose change could not be read is forgotten, since nobody knows its
text any more; it is known again when the editor sends all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lsprotocol.types import TextDocumentContentChangeEvent, TextDocumentContentChangePartial

from dg_lsp.config.exclusion import NOTEBOOK_CELL, file_of
from dg_lsp.config.settings import Settings
from dg_lsp.documents import ipython
from dg_lsp.documents.notebooks import NOTHING_AROUND, Around, NotebookCell, Notebooks
from dg_lsp.documents.positions import Encoding, LineList, Lines, span_of
from engine.common.files import sendable
from engine.common.sequences import common_ends

log = logging.getLogger(__name__)

REMEMBERED_AFTER_CLOSING = 8
MOST_EDITS = 16
"""Of one notification, that are told one by one: each costs as much as the document is long, here and wherever somebody
follows it. What changes at more places at once is replaced or formatted, and one edit."""
NOT_OPEN = "The document is not open."
"""Why nothing can be done in one."""
NO_POLICY = "What settings say of the document could not be told; the server's log says why."
"""Why nothing is done in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What settings and the project's files say of a document."""

    settings: Settings = field(default_factory=Settings)
    off: str = ""
    """Why nothing is suggested or edited in it, a sentence; empty where it is."""
    may_show: bool = True
    """Whether the model may see it, beside other documents too."""


class OpenedText(Protocol):
    """What a client says of a document that it opens."""

    @property
    def uri(self) -> str: ...
    @property
    def language_id(self) -> str: ...
    @property
    def version(self) -> int | None: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    uri: str
    language: str
    version: int | None
    """None: the client counts none, and takes edits for none."""
    lines: Lines
    encoding: Encoding = "utf-16"
    """In which its positions count."""
    policy: Policy = field(default_factory=Policy)
    notebook: str = ""
    """By its URI, the one that this is a cell of."""
    around: Around = NOTHING_AROUND
    """What stands in the notebook's other cells."""

    @property
    def text(self) -> str:
        return self.lines.text

    @property
    def file_uri(self) -> str:
        """Of the file that it is, or is a cell of: settings and exclusion go by it."""
        return self.notebook or self.uri

    @property
    def folder(self) -> str:
        """Where its file lies; empty where it has none on this machine, or one whose name is no text."""
        path = file_of(self.file_uri)
        return sendable(path.parent) if path else ""

    @property
    def may_hold_magics(self) -> bool:
        """Whether it is a cell of Python, as IPython runs it."""
        is_cell = bool(self.notebook) or self.uri.startswith(f"{NOTEBOOK_CELL}:")
        return is_cell and self.language == ipython.LANGUAGE

    @property
    def content_language(self) -> str:
        """In which language its text is; a cell's first line may say another than the editor knows."""
        return ipython.language_of(self.text) if self.may_hold_magics else self.language

    def as_code(self, text: str) -> str:
        """A piece of its text as the engine is to have it: of the same length."""
        has_magics = self.may_hold_magics and self.content_language == ipython.AS_CODE
        return ipython.without_magics(text) if has_magics else text

    def as_written(self, text: str, original: str) -> str:
        """What the engine made of `as_code(original)`, as it belongs into the document."""
        return ipython.with_magics(text, original) if self.as_code(original) != original else text

    def may_be_of(self, version: int | None) -> bool:
        """Whether it is of that version, as far as anybody knows."""
        return None in (version, self.version) or version == self.version

    def is_as(self, other: Snapshot | None) -> bool:
        """Whether the same is written in it, and around it."""
        return other is not None and self.lines is other.lines and self.around == other.around


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """`removed` at `start` gave way to `inserted`; offsets count in the text as it was just before this edit."""

    start: int
    removed: str
    inserted: str

    @property
    def end(self) -> int:
        """Behind what was inserted, in the text as it is then."""
        return self.start + len(self.inserted)

    @property
    def takes_back(self) -> bool:
        """Whether there is only less than before: some editors put the indent of a deleted line in again."""
        return self.removed != self.inserted and self.removed.startswith(self.inserted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one notification did to a document."""

    before: Snapshot
    after: Snapshot
    edits: tuple[Edit, ...]


class Documents:
    """Open documents, and the last few that were edited and closed. `policy(uri, language)` is asked when a document is
    opened and when `renew` is called, not for each key; where that fails, nothing is done in this one document."""

    def __init__(
        self, encoding: Encoding = "utf-16", policy: Callable[[str, str], Policy] = lambda uri, language: Policy()
    ) -> None:
        self.encoding: Encoding = encoding
        self._policy = policy
        self._open: dict[str, Snapshot] = {}
        # Open in the editor, but with a text that nobody here knows.
        self._lost: dict[str, Snapshot] = {}
        # Most recently touched last.
        self._edited: dict[str, Snapshot] = {}
        self._notebooks = Notebooks(self._read)

    def open(self, item: OpenedText) -> Snapshot:
        """Take a document in; one that is open already is replaced."""
        notebook = self._notebooks.holding(item.uri)
        snapshot = Snapshot(
            uri=item.uri,
            language=item.language_id,
            version=item.version,
            lines=Lines(item.text),
            encoding=self.encoding,
            policy=self._policy_of(notebook or item.uri, item.language_id),
            notebook=notebook,
        )
        self._open[item.uri] = snapshot
        self._lost.pop(item.uri, None)
        self._edited.pop(item.uri, None)
        self._notebooks.rewritten(item.uri)
        self._forget_renamed()
        return snapshot

    def change(self, uri: str, version: int | None, events: Iterable[TextDocumentContentChangeEvent]) -> Change | None:
        """Apply the changes in order; None where the document is unknown.

        One that was forgotten is known again from the first change that holds all of its text.
        """
        events = list(events)
        before = self._open.get(uri) or self._found(uri, events)
        if before is None:
            return None
        edits, lines = (self._as_one if len(events) > MOST_EDITS else self._in_turn)(before.lines, events)
        after = replace(before, version=version, lines=lines)
        self._open[uri] = after
        self._edited.pop(uri, None)
        self._edited[uri] = after
        if before.content_language == after.content_language:
            self._notebooks.changed(uri)
        else:
            self._notebooks.rewritten(uri)
        return Change(before=before, after=self._in_notebook(after), edits=edits)

    def close(self, uri: str) -> None:
        """The editor let go of it; what was edited stays remembered for a while, but for a cell's text, which was
        deleted."""
        self._open.pop(uri, None)
        self._lost.pop(uri, None)
        if uri in self._edited and self._edited[uri].notebook:
            del self._edited[uri]
        self._notebooks.forget(uri)
        self._forget_renamed()
        for forgotten in self._closed()[:-REMEMBERED_AFTER_CLOSING]:
            del self._edited[forgotten]

    def forget(self, uri: str) -> Snapshot | None:
        """Drop a document whose text is no longer known, and tell what it was; None where it was not open."""
        lost = self._open.pop(uri, None)
        if lost:
            self._lost[uri] = lost
        self._edited.pop(uri, None)
        self._notebooks.rewritten(uri)
        return lost

    def open_notebook(self, uri: str, cells: Sequence[NotebookCell]) -> None:
        """Take in which cells a notebook has; their texts come by `open`."""
        self._notebooks.open(uri, cells)
        self._adopt(uri, cells)

    def splice_cells(self, notebook: str, start: int, count: int, cells: Sequence[NotebookCell]) -> None:
        """Put cells in the place of others; which are open says `open` and `close`. Raises UnknownCells."""
        self._notebooks.splice(notebook, start, count, cells)
        self._adopt(notebook, cells)

    def renew_cells(self, notebook: str, cells: Sequence[NotebookCell]) -> bool:
        """Take what cells are now; whether any is of another kind."""
        return self._notebooks.renew(notebook, cells)

    def close_notebook(self, uri: str) -> None:
        """Its cells' documents are closed, or their order is no longer known."""
        self._notebooks.close(uri)

    def is_notebook(self, uri: str) -> bool:
        return self._notebooks.is_open(uri)

    def cells(self, notebook: str) -> Sequence[str]:
        """The documents of a notebook's cells; none for what is no notebook."""
        return self._notebooks.cells(notebook)

    def file_uri(self, uri: str) -> str:
        """Of the file that a document is, or is a cell of."""
        return self._notebooks.holding(uri) or uri

    def renew(self, file_uri: str | None = None) -> None:
        """Settings or a project's files changed, for one file or for all: ask for policies again."""
        for held in (self._open, self._lost, self._edited):
            for snapshot in list(held.values()):
                if file_uri not in (None, snapshot.file_uri):
                    continue
                policy = self._policy_of(snapshot.file_uri, snapshot.language)
                if policy != snapshot.policy:
                    held[snapshot.uri] = replace(snapshot, policy=policy)

    def get(self, uri: str) -> Snapshot | None:
        held = self._open.get(uri)
        return held and self._in_notebook(held)

    def of_file(self, file_uri: str) -> Sequence[Snapshot]:
        """The open documents of a file: itself, or its cells. In any thread."""
        return [held for held in list(self._open.values()) if held.file_uri == file_uri]

    def uris(self) -> Sequence[str]:
        """Of all open documents whose text is known. In any thread."""
        return list(self._open)

    def others(self, uri: str) -> Sequence[Snapshot]:
        """All open or lately edited documents but `uri`."""
        return [held for held in {**self._edited, **self._open}.values() if held.uri != uri]

    def known(self, uri: str) -> Snapshot | None:
        """A document that is open, or was edited and closed lately; without what is around it. In any thread."""
        return self._open.get(uri) or self._edited.get(uri)

    def edited(self, uri: str) -> bool:
        """Whether a document was edited lately."""
        return uri in self._edited

    def _closed(self) -> list[str]:
        """Those that are remembered, the latest last."""
        return [uri for uri in self._edited if uri not in self._open]

    def _forget_renamed(self) -> None:
        """A text that was saved under another name is open there, and what it was is nobody's context. Editors open
        the one and close the other in any order, and may end the last line as they save."""
        if closed := self._closed():
            there = {held.text.rstrip() for held in self._open.values()}
            for uri in closed:
                if self._edited[uri].text.rstrip() in there:
                    del self._edited[uri]

    def _policy_of(self, file_uri: str, language: str) -> Policy:
        try:
            return self._policy(file_uri, language)
        except Exception:  # or others would go on by what held before
            log.exception("What holds for a document could not be told.")
            return Policy(off=NO_POLICY, may_show=False)

    def _in_notebook(self, snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, around=self._notebooks.around(snapshot.uri)) if snapshot.notebook else snapshot

    def _read(self, uri: str) -> tuple[str, str] | None:
        held = self._open.get(uri)
        return (held.content_language, held.as_code(held.text)) if held else None

    def _adopt(self, notebook: str, cells: Sequence[NotebookCell]) -> None:
        """Cells whose documents were open before go by what holds for the notebook."""
        for held in (self._open[cell.uri] for cell in cells if cell.uri in self._open):
            if held.notebook != notebook:
                policy = self._policy_of(notebook, held.language)
                self._open[held.uri] = replace(held, notebook=notebook, policy=policy)

    def _found(self, uri: str, events: list[TextDocumentContentChangeEvent]) -> Snapshot | None:
        """The last snapshot of a forgotten document whose text `events` bring anew; drops those in front of it."""
        partial = [isinstance(event, TextDocumentContentChangePartial) for event in events]
        if all(partial):
            return None
        del events[: partial.index(False)]
        return self._lost.pop(uri, None)

    def _in_turn(
        self, lines: Lines, events: Iterable[TextDocumentContentChangeEvent]
    ) -> tuple[tuple[Edit, ...], Lines]:
        edits: list[Edit] = []
        for event in events:
            edit = self._edit(lines, event)
            edits.append(edit)
            lines = lines.replace(edit.start, edit.start + len(edit.removed), edit.inserted)
        return tuple(edits), lines

    def _as_one(self, lines: Lines, events: Iterable[TextDocumentContentChangeEvent]) -> tuple[tuple[Edit, ...], Lines]:
        now = LineList(lines.text)
        for event in events:
            if isinstance(event, TextDocumentContentChangePartial):
                now.replace(event.range, event.text, self.encoding)
            else:
                now = LineList(event.text)
        after = Lines(now.text)
        return (smallest_edit(lines.text, after.text),), after

    def _edit(self, lines: Lines, event: TextDocumentContentChangeEvent) -> Edit:
        new = event.text
        if not isinstance(event, TextDocumentContentChangePartial):
            return smallest_edit(lines.text, new)
        start, end = span_of(lines, event.range, self.encoding)
        return Edit(start=start, removed=lines.text[start:end], inserted=new)


def smallest_edit(old: str, new: str) -> Edit:
    """The one edit that leads from `old` to `new` without what both begin and end with."""
    start, tail = common_ends(old, new)
    return Edit(start=start, removed=old[start : len(old) - tail], inserted=new[start : len(new) - tail])
