"""What of the text behind the cursor an insertion makes redundant: pure functions over strings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_OPENERS = {")": "(", "]": "[", "}": "{", ">": "<"}
_QUOTES = "\"'`"
_FOLLOWERS = ";,: "
_LONGEST_NAME = 80
_NEAR_CHARS = 1000
"""Of a line on either side of the cursor, whose brackets are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedInsertion:
    """An insertion fitted to the text behind the cursor."""

    text: str
    swallowed: int
    """Characters behind the cursor that `text` replaces; they are on the cursor's line."""


def fit(insertion: str, tail: str) -> FittedInsertion | None:
    """Fit an insertion that stands for all of `tail`; None where they have nothing to do with each other.

    `tail` is what came between the cursor and the text the insertion was made for: nothing, brackets and quotes that
    the editor closed by itself, or the lines it broke them over.
    """
    if not tail:
        return FittedInsertion(text=insertion, swallowed=0)
    if insertion == tail:
        return None
    if redundant(insertion, tail) == len(tail):
        return FittedInsertion(text=insertion, swallowed=len(tail))
    if insertion.endswith(tail):
        return FittedInsertion(text=insertion.removesuffix(tail), swallowed=0)
    return None


def redundant(insertion: str, tail: str, head: str = "") -> int:
    """How many characters at the start of `tail` the insertion closes by itself.

    Counted are brackets and quotes that are closed but not opened in the insertion, and what follows them literally.
    Those that `head`, the line before the cursor, opens and `tail` leaves open are the insertion's to close.
    """
    at = taken = 0
    for character in tail:
        if taken and character in _FOLLOWERS and insertion[at : at + 1] == character:
            found: int | None = at
        else:
            found = _first_unopened(insertion, at, character, owed=0 if taken else _owed(head, tail, character))
        if found is None:
            break
        at, taken = found + 1, taken + 1
    return taken


def typed_head(before: str, insertion: str) -> int:
    """How many characters before the cursor the insertion begins with again: a name that was begun, or nothing.

    Shorter names than three characters are left alone, since those repeat by chance.
    """
    start = len(before)
    while start and is_name_character(before[start - 1]) and len(before) - start < _LONGEST_NAME:
        start -= 1
    name = before[start:]
    repeats = len(name) >= 3 and insertion.startswith(name) and len(insertion) > len(name)
    return len(name) if repeats and is_name_character(insertion[len(name)]) else 0


def is_name_character(character: str) -> bool:
    return character.isalnum() or character == "_"


def _owed(head: str, tail: str, closer: str) -> int:
    """How many of `closer` are missing on a line that is cut in two at the cursor."""
    opener = _OPENERS.get(closer)
    if opener is None:
        return 0
    opened, closed = reversed(head[-_NEAR_CHARS:]), tail[:_NEAR_CHARS]
    return max(_unmatched(opened, closer, opener) - _unmatched(closed, opener, closer), 0)


def _unmatched(text: Iterable[str], opener: str, closer: str) -> int:
    """How often `closer` comes without an `opener` before it."""
    depth = missing = 0
    for character in text:
        if character == opener:
            depth += 1
        elif character == closer and depth:
            depth -= 1
        elif character == closer:
            missing += 1
    return missing


def _first_unopened(insertion: str, start: int, closer: str, owed: int) -> int | None:
    if closer in _QUOTES:
        places = [at for at in range(start, len(insertion)) if _is_quote(insertion, at, closer)]
        return places[0] if len(places) % 2 else None
    if closer not in _OPENERS:
        return None
    depth, at = owed, start
    while at < len(insertion):
        character = insertion[at]
        if character in _QUOTES:
            at = _string_end(insertion, at)
        elif character == _OPENERS[closer]:
            depth += 1
        elif character == closer:
            if not depth:
                return at
            depth -= 1
        at += 1
    return None


def _is_quote(text: str, at: int, quote: str) -> bool:
    return text[at] == quote and (at == 0 or text[at - 1] != "\\")


def _string_end(text: str, start: int) -> int:
    """Where the string that starts at `start` ends; `start` itself where it does not end on its line."""
    for at in range(start + 1, len(text)):
        if text[at] == "\n":
            break
        if _is_quote(text, at, text[start]):
            return at
    return start
