"""The gap at a cursor, and the part of the document that is sent to the engine."""

from __future__ import annotations

from dataclasses import dataclass

from dg_lsp.documents.diffs import Replacement
from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.positions import Lines
from engine.common.line_ends import LINE_END

WINDOW_CHARS = 48_000
"""Characters sent from either side of the cursor: more than any model's context, so that a huge file costs no more."""
_STEP_CHARS = 16_000
"""The window's start moves in steps, so that the engine can keep its cache of the prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorGap:
    """The gap at a cursor in a document, after the selected completion if there is one."""

    snapshot: Snapshot
    lines: Lines
    """The document's lines, with the selected completion inserted."""
    cursor: int
    """Its offset in `lines`."""
    selected: Replacement | None = None
    """The completion menu's selected item, which the editor shows as if it were accepted."""

    @property
    def text(self) -> str:
        return self.lines.text

    @property
    def head(self) -> str:
        """The text before the cursor on its line."""
        return self.text[self.lines.line_start(self.cursor) : self.cursor]

    @property
    def tail(self) -> str:
        """The text after the cursor on its line."""
        return self.text[self.cursor : self.lines.line_end(self.cursor)]

    @property
    def ends_line(self) -> bool:
        """Whether only space follows on the line; then a suggestion may have several lines."""
        return not self.tail.strip()

    def within(self, text: str) -> str:
        """As much of a text as may stand in the gap: one line of it, unless the gap ends its line."""
        return text if self.ends_line else LINE_END.split(text, maxsplit=1)[0]


def gap_at(snapshot: Snapshot, cursor: int, selected: Replacement | None = None) -> CursorGap:
    if selected is None:
        return CursorGap(snapshot=snapshot, lines=snapshot.lines, cursor=cursor)
    lines = snapshot.lines.replace(selected.start, selected.end, selected.text)
    return CursorGap(snapshot=snapshot, lines=lines, cursor=selected.start + len(selected.text), selected=selected)


def text_window(gap: CursorGap) -> tuple[str, str]:
    """Prefix and suffix of the gap, over the notebook's other cells too, each cut at a line's start if there is one."""
    text, cursor, around = _as_code(gap), gap.cursor, gap.snapshot.around
    start = max(len(around.above) + cursor - WINDOW_CHARS, 0)
    # One character further left, as that may end a line.
    start = max(start - start % _STEP_CHARS - 1, 0)
    before = around.above[start:] + text[max(start - len(around.above), 0) : cursor]
    if start:
        line_end = LINE_END.search(before)
        before = before[line_end.end() if line_end else 1 :]
    after = text[cursor : cursor + WINDOW_CHARS + 1]
    after += around.below[: WINDOW_CHARS + 1 - len(after)]
    if len(after) > WINDOW_CHARS:
        # An LF after the cut ends the line together with its CR.
        torn = after[WINDOW_CHARS] == "\n"
        end = max(after.rfind("\n", 0, WINDOW_CHARS), after.rfind("\r", 0, WINDOW_CHARS - torn)) + 1
        after = after[: end or WINDOW_CHARS]
    return before, after


def _as_code(gap: CursorGap) -> str:
    """The document without magics, of the same length. The cursor's line is left as it is, since a suggestion continues
    it."""
    snapshot, text, lines, cursor = gap.snapshot, gap.text, gap.lines, gap.cursor
    if not snapshot.may_hold_magics:
        return text
    first, last = lines.line_start(cursor), lines.line_end(cursor)
    return snapshot.as_code(text[:first]) + text[first:last] + snapshot.as_code(text[last:])
