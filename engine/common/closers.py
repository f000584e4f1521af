"""Which text after a cursor an insertion closes by itself: pure functions over strings, for both ends."""

from __future__ import annotations

import re

_OPENERS = {")": "(", "]": "[", "}": "{", ">": "<"}
_QUOTES = "\"'`"
_CONTRACTED = re.compile(r"(?:s|t|m|d|re|ve|ll)\b(?!')")
"""After an apostrophe that is no quote: "don't"."""
_NEAR_CHARS = 1000
"""Of a line on either side of the cursor, whose brackets are counted."""


def closes(head: str, insertion: str, tail: str, rest: str | None = None, *, followers: str = "") -> bool:
    """Whether `tail`, which follows the cursor, is nothing but closers that an insertion closes by itself, and such
    `followers` as come right after them there, too.

    Of each the opener stands in `head`, the line before the cursor. Where the `rest` of the line is told, as many are
    needed as `head` opens: of two that are open the insertion may close the one that the line does not. The halves of
    arrows (`=>`, `->`) close nothing.
    """
    head, at, index = head[-_NEAR_CHARS:], 0, 0
    if head[-1:] in ("=", "-") and tail[:1] == ">":
        return False
    while index < len(tail):
        closer = tail[index]
        row = closer
        if index and closer in followers and insertion[at : at + 1] == closer:
            found: int | None = at
        elif closer in _QUOTES:
            # Several in a row are one: they end a string of several lines, or are an empty one.
            row = closer * (len(tail[index:]) - len(tail[index:].lstrip(closer)))
            found = _closing_quote(head, insertion, at, None if rest is None else (tail + rest)[:_NEAR_CHARS], row)
        elif closer in _OPENERS and _left_open(head, closer) > tail[:index].count(closer):
            here = "" if rest is None else (tail + rest)[:_NEAR_CHARS]
            # Those that are missing on the line, which the cursor cuts in two.
            needed = 0 if index or rest is None else max(_left_open(head, closer) - _unopened(here, closer), 0)
            found = _first_unopened(insertion, at, closer, needed)
        else:
            return False
        if found is None:
            return False
        at, index = found + len(row), index + len(row)
    return True


def begins_with(closed: str, tail: str) -> bool:
    """Whether closers begin with `tail`, and with all of a row of quotes that it ends with."""
    return closed.startswith(tail) and not (tail[-1:] in _QUOTES and closed[len(tail) :].startswith(tail[-1:]))


def _left_open(head: str, closer: str) -> int:
    """How many openers of `closer` are not closed in `head`."""
    depth = 0
    for at in range(len(head)):
        if _is_opener(head, at, closer):
            depth += 1
        elif depth and _is_closer(head, at, closer):
            depth -= 1
    return depth


def _unopened(line: str, closer: str) -> int:
    """How often `closer` comes without an opener before it."""
    depth = missing = 0
    for at in range(len(line)):
        if _is_opener(line, at, closer):
            depth += 1
        elif _is_closer(line, at, closer):
            missing += not depth
            depth -= bool(depth)
    return missing


def _first_unopened(insertion: str, start: int, closer: str, owed: int) -> int | None:
    depth, at = owed, start
    while at < len(insertion):
        character = insertion[at]
        if character in _QUOTES:
            at = _string_end(insertion, at)
        elif _is_opener(insertion, at, closer):
            depth += 1
        elif _is_closer(insertion, at, closer):
            if not depth:
                return at
            depth -= 1
        at += 1
    return None


def _closing_quote(head: str, insertion: str, start: int, line: str | None, row: str) -> int | None:
    """The first such row of quotes of an insertion, where all three leave one open; where the line is not told, strings
    may stand in strings."""
    before, places = _quotes(head, row), _quotes(insertion, row, start)
    if not before or not places:
        return None
    odd = line is None or all(len(each) % 2 for each in (before, places, _quotes(line, row)))
    return places[0] if odd else None


def _quotes(text: str, row: str, start: int = 0) -> list[int]:
    """Where a row of quotes stands, no longer and no shorter."""
    found: list[int] = []
    at = text.find(row[0], start)
    while at >= 0:
        end = len(text) - len(text[at:].lstrip(row[0]))
        if end - at == len(row) and _is_quote(text, at, row[0]):
            found.append(at)
        at = text.find(row[0], end)
    return found


def _is_opener(text: str, at: int, closer: str) -> bool:
    if text[at] != _OPENERS[closer] or _is_escaped(text, at):
        return False
    # A comparison has a blank there.
    return not (closer == ">" and text[at + 1 : at + 2].isspace())


def _is_closer(text: str, at: int, closer: str) -> bool:
    if text[at] != closer or _is_escaped(text, at):
        return False
    return not (closer == ">" and text[at - 1 : at] in ("=", "-"))


def _is_escaped(text: str, at: int) -> bool:
    return (at - len(text[:at].rstrip("\\"))) % 2 == 1


def _is_quote(text: str, at: int, quote: str) -> bool:
    if text[at] != quote or _is_escaped(text, at):
        return False
    return not (quote == "'" and at and text[at - 1].isalpha() and _CONTRACTED.match(text, at + 1))


def _string_end(text: str, start: int) -> int:
    """Where the string that starts at `start` ends; `start` itself where it does not end on its line."""
    for at in range(start + 1, len(text)):
        if text[at] == "\n":
            break
        if _is_quote(text, at, text[start]):
            return at
    return start
