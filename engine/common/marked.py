"""Gaps given by `▮` markers or by LINE:COL positions, converted to string offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from engine.common.errors import BadInput
from engine.common.line_ends import LINE_END

MARKER = "▮"
_POSITION = re.compile(r"0*([1-9][0-9]{0,8}):0*([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedText:
    """A text with a gap. `prefix + old + suffix` is the text without markers."""

    prefix: str
    old: str
    suffix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """1-based; columns count characters (code points), line ends not included."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


def parse_position(text: str) -> Position:
    """`LINE:COL` as a Position. Raises BadInput."""
    match = _POSITION.fullmatch(text)
    if not match:
        raise BadInput(f"{text!r} is not a position: give LINE:COL, both counted from 1, as in 12:5.")
    return Position(line=int(match[1]), column=int(match[2]))


def gap_between(text: str, at: Position, to: Position | None = None) -> MarkedText:
    """The gap at a position, or the span between two. Raises BadInput for a position outside the text."""
    start = offset(text, at)
    end = start if to is None else offset(text, to)
    if end < start:
        raise BadInput(f"The span ends at {to}, before it starts at {at}: swap the two.")
    return MarkedText(prefix=text[:start], old=text[start:end], suffix=text[end:])


def gap_at_markers(text: str) -> MarkedText:
    """One `▮` marks a gap, `▮old▮` a gap with text to replace. Raises BadInput for none or for more than two."""
    parts = text.split(MARKER)
    match parts:
        case [prefix, suffix]:
            return MarkedText(prefix=prefix, old="", suffix=suffix)
        case [prefix, old, suffix]:
            return MarkedText(prefix=prefix, old=old, suffix=suffix)
        case [_]:
            raise BadInput(
                f"The text has no {MARKER} that marks the gap: add one, or give a position with --at LINE:COL."
            )
        case _:
            raise BadInput(
                f"The text has {len(parts) - 1} {MARKER} markers: leave one at the gap, or two around what to replace."
            )


def offset(text: str, position: Position) -> int:
    """The string offset of a position. Raises BadInput for a position outside the text."""
    line = next(islice(_lines(text), position.line - 1, None), None)
    if line is None:
        raise BadInput(f"Line {position.line} is outside the text, whose last line is {line_count(text)}.")
    start, end = line
    if position.column > end - start + 1:
        raise BadInput(
            f"Column {position.column} is outside line {position.line}, whose end is column {end - start + 1}."
        )
    return start + position.column - 1


def line_end(text: str, line: int) -> Position:
    """Where a line ends. Raises BadInput for one outside the text."""
    start = offset(text, Position(line=line, column=1))
    end = LINE_END.search(text, start)
    return Position(line=line, column=1 + (end.start() if end else len(text)) - start)


def line_count(text: str) -> int:
    """How many lines a text has, counting an unfinished or empty last line."""
    return sum(1 for _ in _lines(text))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Start and end offset of each line, line ends not included."""
    start = 0
    for end in LINE_END.finditer(text):
        yield start, end.start()
        start = end.end()
    yield start, len(text)
