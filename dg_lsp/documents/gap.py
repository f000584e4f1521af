"""Where text is wanted: a cursor in a document, and the part of the document that the engine is shown."""

from __future__ import annotations

from dataclasses import dataclass

from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.positions import Lines
from engine.common.line_ends import LINE_END

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
    """The text before and behind the gap, in other cells of its notebook too; each cut at a line's start where there is
    one in reach."""
    text, cursor, around = _as_code(gap), gap.cursor, gap.snapshot.around
    start = max(len(around.above) + cursor - WINDOW_CHARS, 0)
    # One character further left: it may end a line.
    start = max(start - start % _STEP_CHARS - 1, 0)
    before = around.above[start:] + text[max(start - len(around.above), 0) : cursor]
    if start:
        line_end = LINE_END.search(before)
        before = before[line_end.end() if line_end else 1 :]
    behind = text[cursor : cursor + WINDOW_CHARS + 1]
    behind += around.below[: WINDOW_CHARS + 1 - len(behind)]
    if len(behind) > WINDOW_CHARS:
        # An LF behind the cut ends the line together with its CR.
        torn = behind[WINDOW_CHARS] == "\n"
        end = max(behind.rfind("\n", 0, WINDOW_CHARS), behind.rfind("\r", 0, WINDOW_CHARS - torn)) + 1
        behind = behind[: end or WINDOW_CHARS]
    return before, behind


def _as_code(gap: CursorGap) -> str:
    """The document, of the same length. The cursor's line is as it is: what is suggested there goes on with it."""
    snapshot, text, lines, cursor = gap.snapshot, gap.text, gap.lines, gap.cursor
    if not snapshot.may_hold_magics:
        return text
    first, last = lines.line_start(cursor), lines.line_end(cursor)
    return snapshot.as_code(text[:first]) + text[first:last] + snapshot.as_code(text[last:])
