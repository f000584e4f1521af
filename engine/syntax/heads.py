"""The longest part of a broken fill that can still be offered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from engine.common.line_ends import LINE_END
from engine.syntax.brackets import outside_of_all
from engine.syntax.budget import Budget
from engine.syntax.validator import Validator

_POINT = re.compile(r"(?<=[\w)\]}>\"'`;])(?!\w)")
_TRIED = 24


def longest_valid_head(validator: Validator, fill: str, budget: Budget | None = None) -> str | None:
    """The longest head of `fill`, shorter than it and not blank, that adds no problem; None if none is found in time.

    Whole lines are preferred, then points inside a line where no bracket of the fill is open. Heads that leave the code
    around the gap whole are preferred to those that leave it unfinished.
    """
    unfinished: str | None = None
    for head in islice(heads(fill, validator.after, validator.language), _TRIED):
        if budget and budget.over():
            break
        if unfinished and not validator.brackets.all_pair(head):
            continue
        verdict = validator.verdict(head, budget)
        if verdict is None:
            break
        if verdict.whole:
            return head
        if not verdict.problems:
            unfinished = unfinished or head
    return unfinished


def heads(fill: str, after: str, language: str) -> Iterator[str]:
    """Parts of a fill, each from its beginning, that may be offered alone: best first, without repetition."""
    seen = {fill.rstrip()}
    for head in (*_lines(fill, after), *_points(fill, language)):
        # No head is the fill itself with another line break.
        if head.strip() and len(head) < len(fill) and head not in seen:
            seen.add(head)
            yield head


def _lines(fill: str, after: str) -> Iterator[str]:
    """Whole lines without the last line break, unless the text after the gap would then follow in the same line."""
    goes_on = after[:1] not in ("", "\r", "\n")
    for end in reversed([match.start() for match in LINE_END.finditer(fill)]):
        last = len(fill[:end].rstrip())
        line_end = LINE_END.search(fill, last)
        yield fill[: line_end.end() if goes_on and line_end else last]


def _points(fill: str, language: str) -> Iterator[str]:
    points = (match.start() for match in _POINT.finditer(fill))
    for point in reversed(list(outside_of_all(fill, language, points))):
        yield fill[:point]
