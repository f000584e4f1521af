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
"""The `row` of a hypothesis that comes from no canvas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One way to fill the gap."""

    row: int
    """The row of its canvas."""
    text: str
    """With line feeds; without the prompt head, which stands before the cursor."""
    ids: tuple[int, ...]
    """Its tokens on the last canvas, unused slots left out; the first may begin before the cursor."""
    confidence: tuple[float, ...]
    """The probability of each of `ids`."""
    syntax: Syntax = "unchecked"
    after: tuple[float, ...] = ()
    """The probability on the canvas of each of the first SCORED_SUFFIX tokens of the suffix."""
    swallowed: int = 0
    """Characters after the gap that it replaces."""
    whole: bool = True
    """False if the code around the gap is known to be unfinished with it."""
    score: tuple[float, ...] = ()
    """The model's log-probabilities of its tokens and of what follows them, once it was scored."""
    origin: str = ""
    """For a workspace match: the place that it comes from."""
    likeness: float = 0.0
    """For a workspace match: the number of tokens that its surroundings share with the gap's."""
    likely: float = 0.0
    """The probability that it is exactly the gap's text; 0: unknown. For a workspace match it is fitted to how alike
    the surroundings are."""
    handicap: float = 0.0
    """Nats taken from its score in ranking."""

    @property
    def mean_confidence(self) -> float:
        """Geometric mean; 1 if there are no tokens."""
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
    """The hypothesis of a row; None if it is no text or does not begin with the prompt head."""
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
    """A hypothesis cut to `text`, which it begins with; a token that is cut in two stays."""
    if text == long.text:
        return long
    count = sum(start < len(text) for start, _ in _places(gap, long))
    return replace(long, text=text, ids=long.ids[:count], confidence=long.confidence[:count])


def offsets(gap: Gap, found: Hypothesis) -> list[tuple[int, int]]:
    """Where each of a hypothesis's tokens stands in its text: (start, end), cut to the text."""
    size = len(found.text)
    return [(min(max(start, 0), size), min(max(end, 0), size)) for start, end in _places(gap, found)]


def _places(gap: Gap, found: Hypothesis) -> list[tuple[int, int]]:
    """(start, end) of each token in the hypothesis's text; negative before the cursor."""
    bounds = token_bounds(gap.model, (*gap.committed, *found.ids))[len(gap.committed) :]
    return list(pairwise(at - len(gap.prompt.head) for at in bounds))
