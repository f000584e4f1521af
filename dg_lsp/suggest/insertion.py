"""Fits the rest of a suggestion to the text around the cursor; pure functions over strings."""

from __future__ import annotations

from dataclasses import dataclass

from engine.common.closers import closes
from engine.common.names import is_name_character

_FOLLOWERS = ";,: "
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedInsertion:
    """An insertion fitted to the text after the cursor."""

    text: str
    swallowed: int
    """Characters after the cursor that `text` replaces; they are on the cursor's line."""


def fit(head: str, insertion: str, tail: str) -> FittedInsertion | None:
    """Fit an insertion that replaces all of `tail`; None where it does not fit.

    `tail` is what came between the cursor and the text the insertion was made for: nothing, brackets and quotes that
    the editor closed by itself, or the lines it broke them over. `head` is the line before the cursor.
    """
    if not tail:
        return FittedInsertion(text=insertion, swallowed=0)
    if insertion == tail:
        return None
    if closes(head, insertion, tail, followers=_FOLLOWERS):
        return FittedInsertion(text=insertion, swallowed=len(tail))
    if insertion.endswith(tail):
        return FittedInsertion(text=insertion.removesuffix(tail), swallowed=0)
    return None


def typed_head(before: str, insertion: str) -> int:
    """How many characters before the cursor the insertion repeats: a name that was begun, or 0.

    Names shorter than three characters and rows of one character are left alone: they repeat by chance.
    """
    start = len(before)
    while start and is_name_character(before[start - 1]) and len(before) - start < _LONGEST_NAME:
        start -= 1
    name = before[start:]
    repeats = len(name) >= 3 and insertion.startswith(name) and len(insertion) > len(name)
    goes_on = insertion[len(name) :]
    return len(name) if repeats and is_name_character(goes_on[0]) and goes_on[0] != name[0] else 0
