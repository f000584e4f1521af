"""Every fill parses: what does not is denoised again around the problem, then cut, then not offered.

Only a canvas can do this: the tokens of a problem become noise while everything else stays pinned.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.common.request import Syntax
from engine.fill.canvas import reopened
from engine.fill.executor import Step, Work
from engine.fill.gap import Gap
from engine.fill.hypotheses import Hypothesis, hypotheses, hypothesis, offsets, shortened
from engine.fill.lengths.strategies import Fitted
from engine.fill.sampling import doubtful, linear_temperature
from engine.fill.validation import checked, validated_fills
from engine.models.logits import Logits
from engine.syntax.languages import language_of
from engine.syntax.problems import Problem

ROUNDS = 2
"""Times that a canvas is repaired: around the problem, then all of its lines."""
STEPS = 4
TEMPERATURE = 0.5
"""Temperature of repairs: low, but above 0, as the likeliest tokens did not parse."""
DOUBTFUL = 0.2
"""A token that was drawn with a lower probability is drawn again once its neighbours are known."""
NEIGHBOURS = 2
"""Tokens beside a problem that are denoised again with it."""


def repaired(gap: Gap, fitted: Fitted, rounds: int = ROUNDS) -> Work[list[Hypothesis]]:
    """The hypotheses of `fitted` that may be offered, repaired or cut where needed."""
    held, least = fitted.canvas.pinned, gap.sampling.mend_from
    # What says nothing is not offered whatever a validator says.
    pending = {each.row: each for each in hypotheses(gap, fitted) if each.text or gap.request.old}
    done: list[Hypothesis] = []
    spent: list[Hypothesis] = []
    for round_ in range(rounds + 1):
        broken = yield from _sort_out(gap, pending, done, "repaired" if round_ else "ok")
        if gap.request.task == "fill":
            if len(done) >= gap.request.n:
                break  # enough can be shown
            broken = {row: found for row, found in broken.items() if pending[row].mean_confidence >= least}
        if not broken or round_ == rounds or gap.should_stop():
            break
        # Tokens that were to stay as they are stay so here, too.
        places = _places(gap, fitted, pending, broken, whole_lines=round_ > 0) & ~held
        fitted = yield from _redo(gap, fitted, places)
        for row in broken:
            again = hypothesis(gap, fitted, row)
            if again is not None:
                pending[row] = again
            else:
                # The canvas says nothing now: what it said before can be cut, but not repaired again.
                spent.append(pending.pop(row))
    return done + (yield from _cut(gap, [*pending.values(), *spent]))


def _sort_out(
    gap: Gap, pending: dict[int, Hypothesis], done: list[Hypothesis], syntax: Syntax
) -> Work[dict[int, tuple[Problem, ...]]]:
    """Move what may be offered from `pending` to `done`; returns the problems of the rest, by row."""
    broken: dict[int, tuple[Problem, ...]] = {}
    needs_verdict = gap.request.task != "fill" and language_of(gap.request.language) is not None
    validated = yield from validated_fills(gap.request, [each.text for each in pending.values()], gap.deadline)
    for (row, said), found in zip(list(pending.items()), validated, strict=True):
        if found is None:
            continue
        if found.verdict and found.verdict.problems:
            broken[row] = found.verdict.problems
        elif found.verdict or not needs_verdict:
            done.append(checked(shortened(gap, said, found.text), found, syntax))
            del pending[row]
    return broken


def _places(
    gap: Gap,
    fitted: Fitted,
    pending: dict[int, Hypothesis],
    broken: dict[int, tuple[Problem, ...]],
    *,
    whole_lines: bool,
) -> Tensor:
    """Canvas positions [B, L] to denoise again: tokens under or beside a problem, and the unused slots of their row."""
    places = torch.zeros_like(fitted.canvas.pinned)
    for row, problems in broken.items():
        width = fitted.widths[row]
        slots = fitted.canvas.row(row)[:width]
        spans = offsets(gap, pending[row])
        used = [at for at, token in enumerate(slots) if token != gap.model.info.pad_id]
        for problem in problems:
            places[row, [used[at] for at in _touched(pending[row].text, spans, problem, whole_lines)]] = True
        # A repair may need more room, or less.
        places[row, [at for at in range(width) if at not in used or at >= used[len(spans) - 1]]] = True
    return places


def _touched(text: str, spans: Sequence[tuple[int, int]], problem: Problem, whole_lines: bool) -> list[int]:
    start, end = problem.start, problem.end
    if whole_lines:
        start = text.rfind("\n", 0, start) + 1
        end = at if (at := text.find("\n", end)) >= 0 else len(text)
    if start == end:
        # Something is missing between two tokens: both are under it.
        start, end = start - 1, end + 1
    under = [at for at, (first, last) in enumerate(spans) if first < end and last > start]
    if not under:
        return list(range(len(spans)))
    return list(range(max(0, under[0] - NEIGHBOURS), min(len(spans), under[-1] + NEIGHBOURS + 1)))


def _redo(gap: Gap, fitted: Fitted, places: Tensor) -> Generator[Step, Logits, Fitted]:
    canvas = reopened(fitted.canvas, places, gap.model.info.noise, gap.generator)
    canvas = yield from gap.denoise(
        canvas,
        widths=fitted.widths,
        slack=fitted.slack,
        max_steps=STEPS,
        temperature=linear_temperature(TEMPERATURE, TEMPERATURE, STEPS),
        greedy_rows=0,
        top_p=1.0,
        remask=doubtful(DOUBTFUL),
    )
    return replace(fitted, canvas=canvas)


def _cut(gap: Gap, left: Sequence[Hypothesis]) -> Work[list[Hypothesis]]:
    """The valid parts of hypotheses that could not be repaired."""
    if gap.request.task != "fill":
        return []
    validated = yield from validated_fills(gap.request, [each.text for each in left], gap.deadline, cut=True)
    pairs = ((said, found) for said, found in zip(left, validated, strict=True) if found and found.verdict)
    return [checked(shortened(gap, said, found.text), found, "cut") for said, found in pairs]
