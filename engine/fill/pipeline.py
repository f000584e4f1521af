"""From a request to ranked candidates."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from engine.common.errors import BadInput
from engine.common.request import Candidate, Filled, FillRequest, Timings
from engine.fill.causal_fill import causal_fill
from engine.fill.causal_hypothesis import causal_hypothesis
from engine.fill.deadline import Deadline
from engine.fill.executor import Filling, Step, drive, filled_by
from engine.fill.gap import Gap
from engine.fill.gap_opening import open_gap
from engine.fill.hypotheses import NO_ROW, Hypothesis, hypotheses
from engine.fill.lengths.calibrated import calibrated
from engine.fill.lengths.expand import expand
from engine.fill.lengths.strategies import Fitted, Strategy, discover, fixed, free, predicted, slack
from engine.fill.line_ends import in_line_feeds
from engine.fill.prefill import read
from engine.fill.ranking import ranked, scored, worthwhile
from engine.fill.repair import ROUNDS, repaired
from engine.fill.rewritten import rewritten
from engine.fill.validation import spare_ms
from engine.fill.workspace_matches import merged, workspace_matches
from engine.models.base import Model, Sampling
from engine.models.checkpoints.directory import LengthStrategy
from engine.models.logits import Logits


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a fill. Serving uses all of them; an evaluation leaves one out, or replaces it, to measure its
    worth."""

    repair: bool = True
    """Validate, cut and repair what rows say; else offer it as it is, unchecked."""
    renoise: bool = True
    """Denoise again what does not parse; else only cut it, or do not offer it."""
    ranking: bool = True
    """Order hypotheses by the model's score; else by the canvas's confidence."""
    causal_hypothesis: bool = True
    """Offer what the model writes from left to right if that is likelier; else use canvases alone."""
    canvases: bool = False
    """Draft by canvases, if the model has any. On a processor that saves one pass in six, and next to no time."""
    strategy: Strategy | None = None
    """Fills the gap; None: the model's own, or the given width."""
    sampling: Sampling | None = None
    """None: the model's own."""
    sure: float = 0.9
    """Probability from which a workspace match is answered without a canvas."""


STRATEGIES: dict[LengthStrategy, Strategy] = {
    "predicted": predicted,
    "slack": slack,
    "discover": discover,
    "expand": expand,
    "calibrated": calibrated,
}
_ALL = Parts()


def fill(model: Model, request: FillRequest) -> Filled:
    """Fill a gap and wait for it. Raises BadInput for a request that contradicts itself."""
    return drive(model, infill(model, request))


@in_line_feeds
def infill(
    model: Model,
    request: FillRequest,
    clock: Callable[[], float] = time.perf_counter,
    parts: Parts = _ALL,
) -> Filling:
    """Fill a gap step by step: see engine.fill.executor. `clock` counts seconds.

    Raises BadInput at the first step for a request that contradicts itself.
    """
    _check(request)
    began = clock()
    deadline = Deadline(request.deadline_ms, began, clock, spare_ms(request))
    prompt = yield from read(model, request, deadline, clock)
    gap = open_gap(model, request, deadline, parts.sampling, prompt)
    encoded = clock()
    known = yield from workspace_matches(gap)
    if known and known[0].likely >= parts.sure:
        widths, offered = (), known
    elif model.fills_causally:
        widths, offered = (), merged((yield from causal_fill(gap, known, canvases=parts.canvases)), known)
    else:
        fitted = yield from parts.strategy(gap) if parts.strategy else _fitted(gap)
        rounds = ROUNDS if parts.renoise else 0
        widths = fitted.widths
        written = (yield from repaired(gap, fitted, rounds)) if parts.repair else hypotheses(gap, fitted)
        # A gap longer than a canvas is not read whole.
        offered = merged(written, () if gap.committed else known)
    denoised = clock()
    chosen = worthwhile(gap, offered)
    is_scored = parts.ranking and (gap.scores_canvases or deadline.has_room())
    if is_scored:
        chosen = scored(gap, chosen)
        if parts.causal_hypothesis:
            chosen += yield from causal_hypothesis(gap, chosen)
    candidates = ranked(gap, chosen, by_score=is_scored)
    return filled_by(
        model,
        candidates,
        width=len(gap.committed) + _width(candidates, chosen, widths),
        steps=gap.steps,
        forwards=gap.steps + gap.written,
        context_tokens=len(prompt.context),
        threshold=model.info.threshold,
        ms=Timings(
            encode=(encoded - began) * 1000, denoise=(denoised - encoded) * 1000, total=(clock() - began) * 1000
        ),
    )


def _width(candidates: Sequence[Candidate], chosen: Sequence[Hypothesis], widths: Sequence[int]) -> int:
    """The width of the first candidate's row; without a candidate the first row's."""
    best = candidates[0].text if candidates else None
    first = next((each for each in chosen if each.text == best), None)
    if first is None:
        return widths[0] if widths else 0
    return len(first.ids) if first.row == NO_ROW else widths[first.row]


def _fitted(gap: Gap) -> Generator[Step, Logits, Fitted]:
    """Canvas after canvas until the suffix is reached, or budget or time is used up; a rewrite has one."""
    if gap.request.task == "rewrite":
        return (yield from rewritten(gap))
    while True:
        width = gap.request.width
        left = width - len(gap.committed) if width is not None else gap.budget
        if width is None:
            fitted = yield from STRATEGIES[gap.model.info.length](gap)
            if fitted.complete or left <= gap.room or gap.should_stop():
                return fitted
        elif left <= gap.room or gap.should_stop():
            return (yield from fixed(min(left, gap.room))(gap))
        begun = yield from free(gap, min(gap.room, left - 1))
        if begun.complete:
            return begun
        gap.commit(begun.canvas.row(0))


def _check(request: FillRequest) -> None:
    if request.n < 1:
        raise BadInput(f"{request.n} candidates were asked for: ask for at least one.")
    if request.max_tokens < 1:
        raise BadInput(f"A gap of at most {request.max_tokens} tokens can't hold anything: allow at least one.")
    if request.width is not None and request.width < 1:
        raise BadInput(f"A gap {request.width} tokens wide can't hold anything: ask for at least one.")
    if not 0 < request.strength <= 1:
        raise BadInput(f"The strength is {request.strength}: choose one above 0 and up to 1.")
