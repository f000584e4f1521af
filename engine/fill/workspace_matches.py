"""Workspace matches as candidates: the model scores them instead of writing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from engine.common.request import WorkspaceMatch
from engine.fill.executor import Work
from engine.fill.gap import Gap
from engine.fill.hypotheses import NO_ROW, Hypothesis
from engine.fill.ranking import standing
from engine.fill.validation import checked, valid_fills

LIKELY, LIKENESS = -3.9, 0.145
"""Log-odds that the likeliest workspace match is the gap's exact text: the constant, and the weight of each token that
its surroundings share with the gap's. Fitted on 92 answers in development holes, 28 of them exact; the bundled model's
score added next to nothing."""


def workspace_matches(gap: Gap) -> Work[list[Hypothesis]]:
    """The workspace matches of a request that fit the gap and are valid there, best first."""
    texts = {each.text: each for each in reversed(gap.request.workspace_matches)}
    ids = {text: tokens for text in reversed(texts) if (tokens := _tokens(gap, text))}
    if gap.request.task != "fill" or not ids:
        return []
    found = yield from valid_fills(gap.request, list(ids), gap.deadline)
    valid = [text for text in ids if text in found]
    if not valid:
        return []
    scores = yield from gap.score([ids[text] for text in valid])
    known = [
        checked(_hypothesis(ids[text], texts[text], text, score), found[text])
        for text, score in zip(valid, scores, strict=True)
        if score
    ]
    return sorted(known, key=lambda each: -standing(gap, each, each.score))


def merged(written: Sequence[Hypothesis], known: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The model's answers together with workspace matches. A text that is both has the higher probability of the
    two."""
    match = {each.text: each for each in known}
    both = [_both(each, same) if (same := match.pop(each.text, None)) else each for each in written]
    return [*both, *match.values()]


def _both(written: Hypothesis, known: Hypothesis) -> Hypothesis:
    if written.ids != known.ids:
        # A canvas that was wider than need be: what was read are other tokens than its own.
        written = replace(written, ids=known.ids, confidence=known.confidence)
    return replace(written, score=known.score, origin=known.origin, likeness=known.likeness, likely=known.likely)


def _tokens(gap: Gap, text: str) -> list[int]:
    """The tokens of a text that fits the gap and its request; else none."""
    request = gap.request
    said = gap.prompt.head + text
    ids = gap.model.tokenize(said) if text.strip() and not (request.single_line and "\n" in text) else []
    fits = len(ids) <= (request.max_tokens if request.width is None else request.width)
    return ids if fits and all(map(gap.is_text, ids)) and gap.model.detokenize(ids) == said else []


def _hypothesis(ids: Sequence[int], match: WorkspaceMatch, text: str, score: Sequence[float]) -> Hypothesis:
    # Where not each of its tokens is read, all are as sure as those that are.
    own = score[: len(ids)] if len(score) >= len(ids) else [fmean(score)] * len(ids)
    odds = LIKELY + LIKENESS * match.likeness
    return Hypothesis(
        row=NO_ROW,
        text=text,
        ids=tuple(ids),
        confidence=tuple(map(math.exp, own)),
        score=tuple(score),
        origin=match.origin,
        likeness=match.likeness,
        likely=max(1 / (1 + math.exp(-odds)), math.exp(min(0.0, sum(score)))),
    )
