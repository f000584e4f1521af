"""How well a gap fits, by a model that reads no text from left to right: pseudo-likelihood, where it tells most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.models.base import READ_ON
from engine.models.masked.memory import Line, MaskedContext

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


def guesses_of(context: MaskedContext, gap: Sequence[int], suffix: Sequence[int], mask: int, row: int) -> list[Guess]:
    """What to run for row number `row`, a gap between `context` and all that is pinned behind it."""
    text = [*context.ids, *gap, *suffix]
    behind = context.length + len(gap)
    ends = [at for at in range(context.length, behind) if at < context.length + ENDS or at >= behind - ENDS]
    guessed = [*ends, *range(behind, behind + min(len(suffix), SUFFIX))]
    tail = max(len(suffix) - READ_ON, 0)
    guesses: list[Guess] = []
    for turn in range(TURNS):
        hidden = guessed[turn::TURNS]
        if hidden:
            ids = list(text)
            for at in hidden:
                ids[at] = mask
            line = Line(ids=ids, context=context.length, tail=tail, asked=hidden, known=())
            guesses.append(Guess(row=row, line=line, truth=[text[at] for at in hidden]))
    return guesses
