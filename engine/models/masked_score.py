"""How well a gap fits, by a model that reads no text from left to right: pseudo-likelihood, where it tells most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.models.masked_memory import Line, MaskedContext

ENDS = 4
"""Tokens at either end of a gap that are guessed: a gap of the wrong width shows there."""
SUFFIX = 8
"""Suffix tokens behind the gap that are guessed."""
TURNS = 2
"""Lines for one row: each hides every second of the guessed tokens, so that all of them have neighbours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A line with tokens hidden."""

    row: int
    line: Line
    truth: Sequence[int]
    """The hidden tokens, in the order of `line.asked`."""


def guesses_of(context: MaskedContext, tokens: Sequence[int], mask: int, row: int) -> list[Guess]:
    """What to run for row number `row`: `tokens` of a gap and the first of the suffix."""
    read_on = _read_on(tokens, context.suffix)
    gap = len(tokens) - read_on
    guessed = [at for at in range(len(tokens)) if at < ENDS or gap - ENDS <= at < gap + SUFFIX]
    rest = context.suffix[read_on:]
    guesses: list[Guess] = []
    for turn in range(TURNS):
        hidden = guessed[turn::TURNS]
        if hidden:
            ids = [*context.ids, *tokens, *rest]
            places = [context.length + at for at in hidden]
            for at in places:
                ids[at] = mask
            line = Line(ids=ids, context=context.length, tail=len(rest), asked=places, known=())
            guesses.append(Guess(row=row, line=line, truth=[tokens[at] for at in hidden]))
    return guesses


def _read_on(row: Sequence[int], suffix: Sequence[int]) -> int:
    """How many of the row's last tokens are the suffix's first."""
    for count in range(min(len(row), len(suffix)), 0, -1):
        if list(row[len(row) - count :]) == list(suffix[:count]):
            return count
    return 0
