"""Where text is wanted: a cursor in a document, and the part of the document that the engine is shown."""

from __future__ import annotations

from dataclasses import dataclass

from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.positions import Lines

WINDOW_CHARS = 48_000
"""On either side of the cursor; more than any model's context, so that a huge file costs no more than a large one."""
_STEP_CHARS = 16_000
"""The window's start moves in steps, so that what the engine has read of it stays the same for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The completion menu's selected item, which the editor shows as if it were taken. Offsets of the document."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorGap:
    """A cursor in a document, behind the selected completion if there is one."""

    snapshot: Snapshot
    lines: Lines
    """The document, with the selected completion in it."""
    cursor: int
    """In `lines`."""
    selected: Selected | None = None

    @property
    def text(self) -> str:
        return self.lines.text

    @property
    def head(self) -> str:
        """The cursor's line before it."""
        return self.text[self.lines.line_start(self.cursor) : self.cursor]

    @property
    def tail(self) -> str:
        """The cursor's line behind it."""
        return self.text[self.cursor : self.lines.line_end(self.cursor)]

    @property
    def ends_line(self) -> bool:
        """Whether nothing but space follows on the line, so that more lines may be added."""
        return not self.tail.strip()


def gap_at(snapshot: Snapshot, cursor: int, selected: Selected | None = None) -> CursorGap:
    if selected is None:
        return CursorGap(snapshot=snapshot, lines=snapshot.lines, cursor=cursor)
    lines = snapshot.lines.replace(selected.start, selected.end, selected.text)
    return CursorGap(snapshot=snapshot, lines=lines, cursor=selected.start + len(selected.text), selected=selected)


def window(gap: CursorGap) -> tuple[str, str]:
    """The text before and behind the gap, each cut at a line's start where there is one in reach."""
    text, lines, cursor = gap.text, gap.lines, gap.cursor
    start, end = max(cursor - WINDOW_CHARS, 0), min(cursor + WINDOW_CHARS, len(text))
    if start:
        start -= start % _STEP_CHARS
        if lines.line_start(cursor) >= start:
            start = lines.starts[lines.line_of(start - 1) + 1]
    if end < len(text):
        cut = lines.line_start(end)
        end = cut if cut > cursor else end
    return text[start:cursor], text[cursor:end]
