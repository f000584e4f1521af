"""Conversion between LSP positions and string offsets; nothing else converts.

LSP counts lines that end in LF, CRLF or a lone CR (no other line separator), and characters in the units of the
encoding that client and server agreed on. Invalid positions are clamped: before the text to its start, after a line or
the text to its end, inside a character to that character's start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

from lsprotocol.types import Position, Range

from engine.common.line_ends import LINE_END
from engine.common.newlines import lines

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_UTF8_CONTINUATION = bytes(range(0x80, 0xC0))


@dataclass(frozen=True)
class Lines:
    """A text and its lines, which are indexed when first needed: most open documents are never typed in."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line's start."""
        # Split rather than searched: a document of a megabyte must not hold up the event loop.
        text = self.text
        broken = text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text
        *lines, _ = broken.split("\n")
        return list(accumulate(map((1).__add__, map(len, lines)), initial=0))

    def replace(self, start: int, end: int, new: str) -> Lines:
        """The text with [start, end) replaced. Only the touched lines are indexed again."""
        text = self.text[:start] + new + self.text[end:]
        shift = len(text) - len(self.text)
        # One character further left: a CR there and a new LF become one line break.
        first, last = self.line_of(max(start - 1, 0)), self.line_of(end)
        rest = self.starts[last + 1 :]
        until = rest[0] + shift if rest else len(text)
        touched = [found.end() for found in LINE_END.finditer(text, self.starts[first], until)]
        replaced = Lines(text)
        vars(replaced)["starts"] = self.starts[: first + 1] + touched + [at + shift for at in rest[1:]]
        return replaced

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def line_start(self, offset: int) -> int:
        return self.starts[self.line_of(offset)]

    def line_end(self, offset: int) -> int:
        """Where the line that holds `offset` ends, before its line break."""
        return self._end(self.line_of(offset))

    def _end(self, line: int) -> int:
        if line + 1 == len(self.starts):
            return len(self.text)
        end = self.starts[line + 1] - 1
        return end - 1 if self.text[end] == "\n" and end > self.starts[line] and self.text[end - 1] == "\r" else end


class LineList:
    """A text for many changes in a row: each costs time by the lines that it touches, not by the text."""

    def __init__(self, text: str) -> None:
        self._lines = _split(text)

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def replace(self, range_: Range, new: str, encoding: Encoding) -> None:
        """Replace a range of the current text by `new`."""
        places = (self._place(range_.start, encoding), self._place(range_.end, encoding))
        (first, start), (last, end) = sorted(places)
        # One line further up: a CR there and a new LF become one line break.
        above = max(first - 1, 0)
        kept = [*self._lines[above:first], self._lines[first][:start]]
        touched = _split("".join(kept) + new + self._lines[last][end:])
        self._lines[above : last + 1] = touched if last + 1 == len(self._lines) else touched[:-1]

    def _place(self, position: Position, encoding: Encoding) -> tuple[int, int]:
        """The line's number and the offset in it."""
        if position.line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        here = Position(line=0, character=position.character)
        return position.line, offset_at(Lines(self._lines[position.line]), here, encoding)


def _split(text: str) -> list[str]:
    """Lines with their line breaks; the last one, which may be empty, has none."""
    found = lines(text)
    return found if found and found[-1][-1] not in "\r\n" else [*found, ""]


def offset_at(lines: Lines, position: Position, encoding: Encoding) -> int:
    if position.line < 0:
        return 0
    if position.line >= len(lines.starts):
        return len(lines.text)
    start, units = lines.starts[position.line], max(position.character, 0)
    # A character has at least one unit, so the rest of the line can't matter.
    line = lines.text[start : min(lines.line_end(start), start + units)]
    return start + (len(line) if encoding == "utf-32" or line.isascii() else _CHARACTERS[encoding](line, units))


def position_at(lines: Lines, offset: int, encoding: Encoding) -> Position:
    """The position of a string offset; one inside a CRLF is its line's end."""
    offset = min(max(offset, 0), len(lines.text))
    line = lines.line_of(offset)
    start = lines.starts[line]
    return Position(line=line, character=_UNITS[encoding](lines.text[start : min(offset, lines.line_end(start))]))


def span_of(lines: Lines, range_: Range, encoding: Encoding) -> tuple[int, int]:
    """The offsets of a range, in order even where the client sent them reversed."""
    start, end = offset_at(lines, range_.start, encoding), offset_at(lines, range_.end, encoding)
    return (start, end) if start <= end else (end, start)


def range_of(lines: Lines, start: int, end: int, encoding: Encoding) -> Range:
    return Range(start=position_at(lines, start, encoding), end=position_at(lines, end, encoding))


def _utf8_characters(line: str, units: int) -> int:
    encoded = line.encode()
    whole = len(encoded[:units].translate(None, _UTF8_CONTINUATION))
    inside = units < len(encoded) and 0x80 <= encoded[units] < 0xC0
    return whole - inside


def _utf16_characters(line: str, units: int) -> int:
    # A pair cut in the middle does not decode and is thereby left out.
    return len(line.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))


_CHARACTERS: Mapping[Encoding, Callable[[str, int], int]] = {
    "utf-8": _utf8_characters,
    "utf-16": _utf16_characters,
}
_UNITS: Mapping[Encoding, Callable[[str], int]] = {
    "utf-8": lambda head: len(head.encode()),
    "utf-16": lambda head: len(head.encode("utf-16-le")) // 2,
    "utf-32": len,
}
