"""From hypotheses to candidates, best first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from engine.common.request import Candidate
from engine.fill.gap import Gap
from engine.fill.hypotheses import Hypothesis, offsets
from engine.fill.lengths.strategies import WIDTH_WEIGHT
from engine.syntax.overlap import repeats_lines

LEAST = 1e-3
"""Least probability of a candidate's width: less counts as this."""
ENDS = 2.0
"""Weight of the log-probability that a candidate ends the gap, for models that have learnt ends; a token's is 1. This,
WIDTH_WEIGHT and `match_nats` were chosen together on development holes; doubling any of them gained nothing."""


def worthwhile(gap: Gap, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Hypotheses without duplicates, without repeats of the suffix and without those that change nothing."""
    wanted = [each for each in hypotheses if not _is_idle(gap, each.text)]
    return list({each.text: each for each in reversed(wanted)}.values())


def scored(gap: Gap, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The same hypotheses with scores of gap and suffix: by the model, or by the canvas if the model has none. Existing
    scores stay."""
    if gap.scores_canvases:
        return [replace(each, score=each.score or tuple(each.canvas_score)) for each in hypotheses]
    unscored = [each.ids for each in hypotheses if not each.score]
    scores = iter(gap.model.score(gap.context, unscored, gap.suffix) if unscored else [])
    return [each if each.score else replace(each, score=tuple(next(scores))) for each in hypotheses]


def ranked(gap: Gap, chosen: Sequence[Hypothesis], *, by_score: bool) -> tuple[Candidate, ...]:
    """Candidates ranked by the model's score, or by the canvas's confidence where nothing was scored."""
    candidates = [_candidate(gap, each, each.score if by_score else each.logs) for each in chosen]
    # What finishes the code comes before what leaves it unfinished, however likely that is.
    order = sorted(range(len(chosen)), key=lambda at: (not chosen[at].whole, -candidates[at].score))
    return tuple(candidates[at] for at in order[: gap.request.n])


def standing(gap: Gap, hypothesis: Hypothesis, score: Sequence[float]) -> float:
    """The value that a hypothesis is ranked by, in nats; larger is better. `score`: from `Gap.score`."""
    # Not the mean, for which a long run of easy tokens is better than a short answer that is right.
    ends = (ENDS - 1) * score[-1] if len(score) > len(hypothesis.ids) and gap.model.info.end_id is not None else 0.0
    tokens, widths = len(gap.committed) + len(hypothesis.ids), gap.predicted_widths
    # The probability of the narrowest width that holds so many tokens, where the model predicted widths.
    likely = next((likely for width, likely in widths.items() if width >= tokens), 0.0) if widths else 1.0
    return sum(score) + ends + fitting(likely) + gap.model.info.match_nats * hypothesis.likeness - hypothesis.handicap


def fitting(likely: float) -> float:
    """What the probability of a width adds to a score: a sum of log-probabilities alone prefers short texts."""
    return WIDTH_WEIGHT * math.log(max(likely, LEAST))


def _is_idle(gap: Gap, text: str) -> bool:
    if gap.request.task == "fill":
        return not text and not gap.request.old
    old, suffix = gap.request.old, gap.request.suffix
    # An edit changes something, and does not just take text away. What repeated the suffix before may go on doing so.
    return text == old or not text.strip() or (repeats_lines(text, suffix) and not repeats_lines(old, suffix))


def _candidate(gap: Gap, hypothesis: Hypothesis, score: Sequence[float]) -> Candidate:
    return Candidate(
        text=hypothesis.text,
        tokens=len(gap.committed) + len(hypothesis.ids),
        confidence=_confidence(gap, hypothesis, score),
        score=standing(gap, hypothesis, score),
        syntax=hypothesis.syntax,
        token_confidence=hypothesis.confidence,
        origin=hypothesis.origin,
        swallowed=hypothesis.swallowed,
        token_ends=tuple(end for _, end in offsets(gap, hypothesis)),
    )


def _confidence(gap: Gap, hypothesis: Hypothesis, score: Sequence[float]) -> float:
    """The confidence that is shown. A model that has learnt gap ends gives the probability of the whole text. For other
    models the score includes the suffix, and nobody expects a rewrite to the letter: there it is the tokens' mean."""
    if gap.model.fills_causally and hypothesis.likely:
        return hypothesis.likely
    if gap.request.task != "fill" or gap.model.info.end_id is None:
        return max(hypothesis.likely, hypothesis.mean_confidence)
    return hypothesis.likely or math.exp(min(0.0, sum(score)))
