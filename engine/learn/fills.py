"""Fills development holes with an exported model: canvas against causal head, and the least confidence to show an
answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from msgspec.structs import replace

from engine.common.request import Filled
from engine.fill.executor import drive
from engine.fill.pipeline import infill
from engine.lab.baselines.left_to_right import fill_by_causal_head
from engine.lab.eval.rows import true_width
from engine.lab.eval.tasks import EvalTask
from engine.models.base import Model

EXACT = 0.5
"""Share of what is shown unrequested that has to be right to the letter."""
_SUREST = (0.2, 0.3, 0.4)
_LONGEST = 96
"""Most tokens of an answer whose width is not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fills:
    """Results on the holes; shares in [0, 1]."""

    holes: int
    canvas: float
    """Share that the engine fills to the letter, width given."""
    causal: float
    """The same share by greedy next tokens after the same context."""
    canvas_alone: int
    """Number of holes that only the canvas fills."""
    causal_alone: int
    adaptive: float
    """Share that the engine fills to the letter, width not given."""
    surest: tuple[float, ...]
    """The share filled to the letter among the surest 20, 30 and 40% of the holes."""
    threshold: float
    shown: float
    """Share of holes whose answer reaches the threshold."""

    def line(self) -> str:
        return (
            f"{self.holes} development holes, width given: canvas {self.canvas:.1%}, causal head {self.causal:.1%} "
            f"({self.canvas_alone} by the canvas alone, {self.causal_alone} by the causal head alone); adaptive: exact "
            f"{self.adaptive:.1%}, of the surest 20, 30, 40% {', '.join(f'{share:.1%}' for share in self.surest)}; "
            f"threshold {self.threshold:.3f} shows {self.shown:.1%}, at least {EXACT:.0%} of them exact"
        )


def fill_holes(model: Model, tasks: Sequence[EvalTask]) -> Fills:
    """Fill each hole in three ways: by canvas with the width given, by the causal head, and as served."""
    assert model.left_to_right is not None
    canvas: list[bool] = []
    causal: list[bool] = []
    answers: list[tuple[float, bool]] = []
    for task in tasks:
        request = task.request(max_tokens=_LONGEST)
        sized = replace(request, width=true_width(model, request, task.truth))
        canvas.append(judged(drive(model, infill(model, sized)), task)[1])
        causal.append(judged(fill_by_causal_head(model, sized), task)[1])
        answers.append(judged(drive(model, infill(model, request)), task))
    answers.sort(key=lambda answer: -answer[0])
    threshold, shown = fitted_threshold(answers)
    return Fills(
        holes=len(tasks),
        canvas=fmean(canvas),
        causal=fmean(causal),
        canvas_alone=sum(a and not b for a, b in zip(canvas, causal, strict=True)),
        causal_alone=sum(b and not a for a, b in zip(canvas, causal, strict=True)),
        adaptive=fmean(exact for _, exact in answers),
        surest=tuple(fmean(e for _, e in answers[: max(1, round(share * len(answers)))]) for share in _SUREST),
        threshold=threshold,
        shown=shown,
    )


def judged(filled: Filled, task: EvalTask) -> tuple[float, bool]:
    """The confidence of an answer, and whether it is right to the letter. No answer has a confidence below every
    threshold."""
    if not filled.candidates:
        return -1.0, False
    best = filled.candidates[0]
    return round(best.confidence, 3), best.text == task.truth


def fitted_threshold(answers: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    """(threshold, share shown) for answers (confidence, whether right): the lowest threshold at which enough of what is
    shown is right. Where there is none: 1, and next to nothing is shown."""
    best = (1.0, 0.0)
    for threshold in sorted({confidence for confidence, _ in answers if confidence >= 0}, reverse=True):
        shown = [exact for confidence, exact in answers if confidence >= threshold]
        if fmean(shown) >= EXACT:
            best = (threshold, len(shown) / len(answers))
    return best
