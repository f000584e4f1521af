"""Context beside the document: recent edits, and text from other documents, ranked by closeness, within a budget, in a
stable order.

The engine caches the context as long as its start stays the same. So a choice is kept until another document changes or
the cursor moves far, and text that rarely changes comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import sqrt
from pathlib import PurePosixPath

from dg_lsp.config.exclusion import name_of
from dg_lsp.documents.documents import Documents, Snapshot
from dg_lsp.workspace.history import EditHistory
from engine.common.newlines import with_line_feeds
from engine.common.request import RecentEdit, Snippet

CHARS_BY_TOKEN = 3
"""A low estimate for code; the engine counts exactly and trims."""
PIECE_CHARS = 1200
FAR_LINES = 40
"""Snippets are chosen again once the cursor has moved this far; names within this distance count."""
READ_CHARS = 50_000
"""Characters read of each document: enough for files written by people."""

_NAME = re.compile(r"[^\W\d]\w{2,}")
_BLANK_LINE = re.compile(r"(?<=\n)\n")
_IMPORT = re.compile(r"^.*\b(?:import|from|require|include|use|using|mod|package|source)\b.*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    others: tuple[Snapshot, ...]
    line: int
    budget_chars: int
    snippets: tuple[Snippet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Whole lines of a document."""

    start: int
    text: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentNames:
    """A document's parts and names, to compare it with others."""

    snapshot: Snapshot
    parts: tuple[_Part, ...]
    names: frozenset[str]
    imported: frozenset[str]
    """Names in its import lines."""

    @property
    def path(self) -> PurePosixPath:
        """Its path, also of a document that is no file."""
        return PurePosixPath(name_of(self.snapshot.file_uri))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    uri: str
    part: _Part
    score: float


class ContextSelector:
    def __init__(self, documents: Documents, history: EditHistory) -> None:
        self._documents = documents
        self._history = history
        self._names: dict[str, DocumentNames] = {}
        self._choices: dict[str, _Choice] = {}

    def snippets(self, snapshot: Snapshot, cursor: int, before: Sequence[Snippet] = ()) -> tuple[Snippet, ...]:
        """Snippets for a gap at `cursor`, within the settings' limit of tokens; `before` counts towards it."""
        context = snapshot.policy.settings.context
        shown = (
            other
            for other in self._documents.others(snapshot.uri)
            if other.policy.may_show and other.uri not in snapshot.around.uris
        )
        others = tuple(sorted(shown, key=lambda other: other.uri))
        line = snapshot.lines.line_of(cursor)
        budget_chars = context.max_tokens * CHARS_BY_TOKEN if context.enabled else 0
        budget_chars = max(budget_chars - sum(len(each.text) for each in before), 0)
        held = self._choices.get(snapshot.uri)
        if held and (held.others, held.budget_chars) == (others, budget_chars) and abs(held.line - line) <= FAR_LINES:
            return held.snippets
        # Nobody reports when a closed document is no longer remembered.
        for uri in [*self._names]:
            if self._documents.known(uri) is None:
                self.forget(uri)
        of_others = {other.uri: self.names_of(other) for other in others}
        near, here = names(_around(snapshot, line)), read(snapshot)
        pieces = [piece for other in others for piece in _pieces(here, of_others[other.uri], near)]
        snippets = tuple(_joined(_within(budget_chars, pieces), self._documents.edited))
        self._choices[snapshot.uri] = _Choice(others=others, line=line, budget_chars=budget_chars, snippets=snippets)
        return snippets

    def edits(self, snapshot: Snapshot, cursor: int) -> tuple[RecentEdit, ...]:
        """Recent edits except on the cursor's line, oldest first."""
        return self._history.recent(snapshot, cursor) if snapshot.policy.settings.context.enabled else ()

    def names_of(self, snapshot: Snapshot) -> DocumentNames:
        """A document's names, cached until its text changes. In any thread."""
        held = self._names.get(snapshot.uri)
        if held is None or held.snapshot.lines is not snapshot.lines:
            held = self._names[snapshot.uri] = read(snapshot)
        return held

    def forget(self, uri: str) -> None:
        """A document was closed, or its text was lost."""
        self._choices.pop(uri, None)
        self._names.pop(uri, None)


def read(snapshot: Snapshot) -> DocumentNames:
    text = with_line_feeds(snapshot.text[:READ_CHARS])
    parts = tuple(_Part(start=start, text=part, names=names(part)) for start, part in _cut(text))
    return DocumentNames(
        snapshot=snapshot,
        parts=parts,
        names=frozenset[str]().union(*(part.names for part in parts)),
        imported=frozenset(name for line in _IMPORT.findall(text) for name in names(line)),
    )


def closeness(document: DocumentNames, other: DocumentNames) -> float:
    """How likely `other` helps in `document`: imports count most, then shared names, then a shared folder."""
    imports = (other.path.stem in document.imported) + 0.5 * (document.path.stem in other.imported)
    beside = document.path.parent == other.path.parent
    same_language = document.snapshot.language == other.snapshot.language
    return 2 * imports + 2 * _likeness(document.names, other.names) + 0.5 * beside + 0.25 * same_language


def names(text: str) -> frozenset[str]:
    """The names in a text, of three characters or more."""
    return frozenset(_NAME.findall(text))


def _likeness(some: frozenset[str], others: frozenset[str]) -> float:
    return len(some & others) / sqrt(len(some) * len(others) or 1)


def _around(snapshot: Snapshot, line: int) -> str:
    starts = snapshot.lines.starts
    end = starts[line + FAR_LINES] if line + FAR_LINES < len(starts) else len(snapshot.text)
    return snapshot.text[starts[max(line - FAR_LINES, 0)] : end]


def _pieces(document: DocumentNames, other: DocumentNames, near: frozenset[str]) -> Iterator[_Piece]:
    close = closeness(document, other)
    for part in other.parts:
        yield _Piece(uri=other.snapshot.uri, part=part, score=close * (0.1 + _likeness(part.names, near)))


def _cut(text: str) -> Iterator[tuple[int, str]]:
    """Pieces of whole lines, cut at blank lines where possible."""
    start = 0
    while start < len(text):
        if len(text) - start <= PIECE_CHARS:
            end = len(text)
        else:
            *_, blank = (None, *_BLANK_LINE.finditer(text, start + PIECE_CHARS // 2, start + PIECE_CHARS))
            end = blank.end() if blank else text.find("\n", start + PIECE_CHARS - 1) + 1 or len(text)
        if text[start:end].strip():
            yield start, text[start:end]
        start = end


def _within(budget_chars: int, pieces: Sequence[_Piece]) -> list[_Piece]:
    chosen = list[_Piece]()
    for piece in sorted(pieces, key=lambda piece: (-piece.score, piece.uri, piece.part.start)):
        if piece.score > 0 and len(piece.part.text) <= budget_chars:
            budget_chars -= len(piece.part.text)
            chosen.append(piece)
    return chosen


def _joined(pieces: Sequence[_Piece], edited: Callable[[str], bool]) -> Iterator[Snippet]:
    """One snippet for each document, edited documents last."""
    ordered = sorted(pieces, key=lambda piece: (edited(piece.uri), piece.uri, piece.part.start))
    for uri, group in groupby(ordered, key=lambda piece: piece.uri):
        text, end = "", 0
        for part in (piece.part for piece in group):
            text += part.text if part.start == end or not text else f"\n{part.text}"
            end = part.start + len(part.text)
        yield Snippet(path=PurePosixPath(name_of(uri)).name, text=text)
