"""Hypotheses: the texts of denoised canvases, before they are validated or ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from engine.common.request import Syntax
from engine.fill.gap import Gap
from engine.fill.lengths.strategies import Fitted
from engine.fill.tokens import token_bounds
from engine.models.base import SCORED_SUFFIX

_LEAST = 1e-12
NO_ROW = -1
"""It stands on no canvas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One way to fill the gap."""

    row: int
    """Of the canvas it came from."""
    text: str
    """With line feeds, without the head that stands before the cursor."""
    ids: tuple[int, ...]
    """Its tokens on the last canvas, unused slots left out; the first may begin before the cursor."""
    confidence: tuple[float, ...]
    """One for each of `ids`."""
    syntax: Syntax = "unchecked"
    after: tuple[float, ...] = ()
    """How sure the canvas is of each of the first SCORED_SUFFIX tokens of the suffix, if it has it."""
    swallowed: int = 0
    """Characters after the gap that it takes the place of."""
    whole: bool = True
    """False where the code around the gap is known to be unfinished with it."""
    score: tuple[float, ...] = ()
    """The model's log-probabilities of its tokens and of what follows them, once it was scored."""
    origin: str = ""
    """Where it stands elsewhere."""
    likeness: float = 0.0
    """Tokens of its surroundings there that are like the gap's."""
    likely: float = 0.0
    """How likely what stands there is to be the gap's very text, as far as its surroundings tell."""
    handicap: float = 0.0
    """Nats by which it has to be likelier than others to come before them."""

    @property
    def mean_confidence(self) -> float:
        """Geometric; 1 where there is no token."""
        return math.exp(fmean(self.logs)) if self.confidence else 1.0

    @property
    def logs(self) -> list[float]:
        """The logarithms of `confidence`."""
        return _logs(self.confidence)

    @property
    def canvas_score(self) -> list[float]:
        """The canvas's log-probabilities of the gap and of the suffix tokens that are scored with it."""
        return _logs((*self.confidence, *self.after))


def _logs(values: Sequence[float]) -> list[float]:
    return [math.log(max(value, _LEAST)) for value in values]


def hypothesis(gap: Gap, fitted: Fitted, row: int) -> Hypothesis | None:
    """The hypothesis of a row; None where it has no text or does not begin with what stands before the cursor."""
    width = fitted.widths[row]
    sure = fitted.canvas.confidence[row, :width].tolist()
    pad = gap.model.info.pad_id
    tokens = fitted.canvas.row(row)[:width]
    kept = [(token, value) for token, value in zip(tokens, sure, strict=False) if token != pad]
    if not all(value for _, value in kept):
        return None  # noise still: no answer came for it
    ids = tuple(token for token, _ in kept)
    said = [*gap.committed, *ids]
    text = gap.model.detokenize(said)
    if not gap.model.vocabulary.is_text(said) or not text.startswith(gap.prompt.head):
        return None
    after = fitted.canvas.confidence[row, width : fitted.canvas.lengths[row]][:SCORED_SUFFIX].tolist()
    return Hypothesis(
        row=row,
        text=text[len(gap.prompt.head) :],
        ids=ids,
        confidence=tuple(value for _, value in kept),
        after=tuple(after),
    )


def hypotheses(gap: Gap, fitted: Fitted) -> list[Hypothesis]:
    found = (hypothesis(gap, fitted, row) for row in range(len(fitted.widths)))
    return [each for each in found if each is not None]


def shortened(gap: Gap, long: Hypothesis, text: str) -> Hypothesis:
    """A hypothesis cut to `text`, a head of its own; a token that is cut in two counts."""
    if text == long.text:
        return long
    count = sum(start < len(text) for start, _ in _places(gap, long))
    return replace(long, text=text, ids=long.ids[:count], confidence=long.confidence[:count])


def offsets(gap: Gap, found: Hypothesis) -> list[tuple[int, int]]:
    """Where each of a hypothesis's tokens stands in its text: (start, end), cut to the text."""
    size = len(found.text)
    return [(min(max(start, 0), size), min(max(end, 0), size)) for start, end in _places(gap, found)]


def _places(gap: Gap, found: Hypothesis) -> list[tuple[int, int]]:
    """(start, end) of each token in what the hypothesis's tokens say; negative before the cursor."""
    bounds = token_bounds(gap.model, (*gap.committed, *found.ids))[len(gap.committed) :]
    return list(pairwise(at - len(gap.prompt.head) for at in bounds))
