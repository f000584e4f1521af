"""The documents an editor has open, as snapshots that never change.

Messages may be out of order or impossible: a change to an unknown document is refused, a range outside the text is
clamped (see `positions`). A document whose change could not be read is forgotten, since its text is unknown, until the
editor sends all of it.
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
"""A notification with more edits counts as one edit: each costs time linear in the document, and so many at once are a
replacement or formatting."""
NOT_OPEN = "The document is not open."
"""Shown for a document that is not open."""
NO_POLICY = "The settings for this document can't be determined; the server's log says why."
"""Shown for a document whose policy failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the settings and the project's files allow for a document."""

    settings: Settings = field(default_factory=Settings)
    off: str = ""
    """A sentence: why nothing is suggested or edited in it; empty: suggestions are on."""
    may_show: bool = True
    """Whether the model may see it, also as context of other documents."""


class OpenedText(Protocol):
    """A document as the client opens it."""

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
    """None: the client counts no versions."""
    lines: Lines
    encoding: Encoding = "utf-16"
    """The encoding of its positions."""
    policy: Policy = field(default_factory=Policy)
    notebook: str = ""
    """The URI of the notebook whose cell it is; empty: it is no cell."""
    around: Around = NOTHING_AROUND
    """The text of the notebook's other cells."""

    @property
    def text(self) -> str:
        return self.lines.text

    @property
    def file_uri(self) -> str:
        """The URI of its file, or its notebook's: settings and exclusion depend on it."""
        return self.notebook or self.uri

    @property
    def folder(self) -> str:
        """The folder of its file; empty where it has no file on this machine, or one whose name is not UTF-8."""
        path = file_of(self.file_uri)
        return sendable(path.parent) if path else ""

    @property
    def may_hold_magics(self) -> bool:
        """Whether it is a Python cell, which may hold IPython's magics."""
        is_cell = bool(self.notebook) or self.uri.startswith(f"{NOTEBOOK_CELL}:")
        return is_cell and self.language == ipython.LANGUAGE

    @property
    def content_language(self) -> str:
        """The language of its text; a cell's first line (`%%bash`) may change it."""
        return ipython.language_of(self.text) if self.may_hold_magics else self.language

    def as_code(self, text: str) -> str:
        """A piece of its text without magics, for the engine; of the same length."""
        has_magics = self.may_hold_magics and self.content_language == ipython.AS_CODE
        return ipython.without_magics(text) if has_magics else text

    def as_written(self, text: str, original: str) -> str:
        """The engine's version of `as_code(original)`, with its magics restored."""
        return ipython.with_magics(text, original) if self.as_code(original) != original else text

    def may_be_of(self, version: int | None) -> bool:
        """Whether it may be of that version; unknown versions match."""
        return None in (version, self.version) or version == self.version

    def is_as(self, other: Snapshot | None) -> bool:
        """Whether its text and the cells around it are the same."""
        return other is not None and self.lines is other.lines and self.around == other.around


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """`removed` at `start` was replaced by `inserted`. Offsets are those of the text just before this edit."""

    start: int
    removed: str
    inserted: str

    @property
    def end(self) -> int:
        """The offset after the inserted text, in the text after the edit."""
        return self.start + len(self.inserted)

    @property
    def takes_back(self) -> bool:
        """Whether it only deletes; some editors insert the indent of a deleted line again."""
        return self.removed != self.inserted and self.removed.startswith(self.inserted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The effect of one `didChange` notification on a document."""

    before: Snapshot
    after: Snapshot
    edits: tuple[Edit, ...]


class Documents:
    """Open documents, and the last few that were edited and closed. `policy(uri, language)` is called when a document
    is opened and by `renew`, not for each key; if it raises, suggestions are off in that document."""

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
        self.notebooks = Notebooks(self._read)
        """Their cells; `open_notebook` and `splice_cells` put cells in."""

    def open(self, item: OpenedText) -> Snapshot:
        """Open a document; an open one of the same URI is replaced."""
        notebook = self.notebooks.holding(item.uri)
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
        self.notebooks.rewritten(item.uri)
        self._forget_renamed()
        return snapshot

    def change(self, uri: str, version: int | None, events: Iterable[TextDocumentContentChangeEvent]) -> Change | None:
        """Apply changes in order; None where the document is unknown.

        A forgotten document is known again from the first change with all of its text.
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
            self.notebooks.changed(uri)
        else:
            self.notebooks.rewritten(uri)
        return Change(before=before, after=self._in_notebook(after), edits=edits)

    def close(self, uri: str) -> None:
        """Close a document. An edited one is remembered for a while, except a cell, which was deleted."""
        self._open.pop(uri, None)
        self._lost.pop(uri, None)
        if uri in self._edited and self._edited[uri].notebook:
            del self._edited[uri]
        self.notebooks.forget(uri)
        self._forget_renamed()
        for forgotten in self._closed()[:-REMEMBERED_AFTER_CLOSING]:
            del self._edited[forgotten]

    def forget(self, uri: str) -> Snapshot | None:
        """Forget the text of a document and return its last snapshot; None where it was not open."""
        lost = self._open.pop(uri, None)
        if lost:
            self._lost[uri] = lost
        self._edited.pop(uri, None)
        self.notebooks.rewritten(uri)
        return lost

    def open_notebook(self, uri: str, cells: Sequence[NotebookCell]) -> None:
        """Register a notebook's cells; their texts come by `open`."""
        self.notebooks.open(uri, cells)
        self._adopt(uri, cells)

    def splice_cells(self, notebook: str, start: int, count: int, cells: Sequence[NotebookCell]) -> None:
        """Replace cells by others; `open` and `close` handle their texts. Raises UnknownCells."""
        self.notebooks.splice(notebook, start, count, cells)
        self._adopt(notebook, cells)

    def file_uri(self, uri: str) -> str:
        """The URI of a document's file, or of its notebook's."""
        return self.notebooks.holding(uri) or uri

    def renew(self, file_uri: str | None = None) -> None:
        """Renew policies, for one file or for all: settings or project files changed."""
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
        """The open documents of a file: one, or a notebook's cells. In any thread."""
        return [held for held in list(self._open.values()) if held.file_uri == file_uri]

    def uris(self) -> Sequence[str]:
        """The URIs of all open documents whose text is known. In any thread."""
        return list(self._open)

    def others(self, uri: str) -> Sequence[Snapshot]:
        """All open or recently edited documents except `uri`."""
        return [held for held in {**self._edited, **self._open}.values() if held.uri != uri]

    def known(self, uri: str) -> Snapshot | None:
        """A document that is open, or was edited and closed recently, without the cells around it. In any thread."""
        return self._open.get(uri) or self._edited.get(uri)

    def edited(self, uri: str) -> bool:
        """Whether a document was edited recently."""
        return uri in self._edited

    def _closed(self) -> list[str]:
        """Closed documents that are remembered, the latest last."""
        return [uri for uri in self._edited if uri not in self._open]

    def _forget_renamed(self) -> None:
        """Forget closed documents whose text is open under another name: they were saved as that. Editors open and
        close in any order, and may add a final line break."""
        if closed := self._closed():
            there = {held.text.rstrip() for held in self._open.values()}
            for uri in closed:
                if self._edited[uri].text.rstrip() in there:
                    del self._edited[uri]

    def _policy_of(self, file_uri: str, language: str) -> Policy:
        try:
            return self._policy(file_uri, language)
        except Exception:  # else other documents would keep outdated policies
            log.exception("The policy of a document could not be determined.")
            return Policy(off=NO_POLICY, may_show=False)

    def _in_notebook(self, snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, around=self.notebooks.around(snapshot.uri)) if snapshot.notebook else snapshot

    def _read(self, uri: str) -> tuple[str, str] | None:
        held = self._open.get(uri)
        return (held.content_language, held.as_code(held.text)) if held else None

    def _adopt(self, notebook: str, cells: Sequence[NotebookCell]) -> None:
        """Give cells that were open before their notebook the notebook's policy."""
        for held in (self._open[cell.uri] for cell in cells if cell.uri in self._open):
            if held.notebook != notebook:
                policy = self._policy_of(notebook, held.language)
                self._open[held.uri] = replace(held, notebook=notebook, policy=policy)

    def _found(self, uri: str, events: list[TextDocumentContentChangeEvent]) -> Snapshot | None:
        """The last snapshot of a forgotten document if `events` hold its whole text; drops the events before that
        one."""
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
    """The one edit that turns `old` into `new`, without their common start and end."""
    start, tail = common_ends(old, new)
    return Edit(start=start, removed=old[start : len(old) - tail], inserted=new[start : len(new) - tail])
