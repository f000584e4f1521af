"""How wide a gap is: one strategy a model. Each returns canvases whose rows are [gap | pinned suffix].

The width decides how well a canvas fills: a small model with the true width beats a large one that has to guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.fill.canvas import Canvas, cat, only
from engine.fill.executor import Step
from engine.fill.gap import FLOOR, Gap
from engine.fill.sampling import LEAST, Race
from engine.fill.slack import met
from engine.models.logits import Logits

AT_ONCE = 2
"""Widths that `slack` tries in one batch."""
PREDICTED, KEPT = 4, 2
"""Least number of widths that `predicted` begins to fill, and that it keeps after the first step."""
WIDTH_WEIGHT = 2.5
"""Weight of a width's log-probability beside that of the tokens, when candidates are ranked."""
FEELERS = 6
"""Unpinned steps before `discover` looks for the suffix."""
MATCHED = 16
"""Suffix tokens that are compared."""
TRIED = 2
"""Least number of places of the suffix that are tried."""
FOUND = -2.0
"""Mean log-probability of the suffix above which its place counts as found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Denoised canvases, one row a candidate."""

    canvas: Canvas
    widths: tuple[int, ...]
    """The width of the gap in each row."""
    slack: bool
    """Whether unused slots are padded."""
    complete: bool
    """Whether the suffix was reached; else the gap wants to go on in a further canvas."""


Fitting = Generator[Step, Logits, Fitted]
Strategy = Callable[[Gap], Fitting]


def fixed(width: int) -> Strategy:
    """The gap is `width` tokens wide, no more, no less."""

    def strategy(gap: Gap) -> Fitting:
        return (yield from _fit(gap, [width] * gap.request.n, slack=False))

    return strategy


def predicted(gap: Gap) -> Fitting:
    """Fill the likeliest widths that the model predicts."""
    most = min(gap.budget, gap.room)
    assert gap.model.width_head is not None
    gap.predicted_widths = likely = gap.model.width_head.widths(gap.context, gap.suffix)
    ranked = sorted((width for width in likely if 0 < width <= most), key=likely.__getitem__, reverse=True)
    widths = ranked[: max(gap.request.n, PREDICTED)] or [most]
    odds = [WIDTH_WEIGHT * math.log(max(likely.get(width, 1.0), LEAST)) for width in widths]
    race = Race(max(gap.request.n, KEPT), odds)
    fitted = yield from _fit(gap, widths, slack=False, race=race)
    return replace(fitted, canvas=only(fitted.canvas, race.rows), widths=tuple(widths[row] for row in race.rows))


def slack(gap: Gap) -> Fitting:
    """The gap is wider than needed, and the model pads what it does not need.

    Narrow widths come first: most gaps are short, and a wide canvas costs as much as several narrow ones. A row that
    neither has an unused slot nor met the suffix says that its gap may be longer. The row of a model that runs on is
    wide enough to say so much of the suffix that its place is sure.
    """
    most = min(gap.budget, gap.room)
    widths = sorted({min(width, most) for width in gap.model.info.widths})
    fitted: Fitted | None = None
    while True:
        tried, widths = widths[:AT_ONCE], widths[AT_ONCE:]
        running = [min(tried[-1] + MATCHED, gap.room)] if gap.model.info.runs_on else []
        rows = [*tried, *running, *[tried[-1]] * (gap.request.n - len(tried))]
        full = range(len(tried), len(tried) + len(running))
        latest = yield from _fit(gap, rows, slack=True, full=full)
        ended = [_ended(gap, latest.canvas, row, width) for row, width in enumerate(rows)]
        if fitted:
            canvas = cat(fitted.canvas, latest.canvas)
            latest = replace(latest, canvas=canvas, widths=(*fitted.widths, *latest.widths))
        fitted = latest
        # Where a narrow row has an end and a wider one has none, they contradict each other.
        complete = any(ended[row] for row in full or range(len(tried) - 1, len(rows)))
        if complete or not widths or gap.should_stop():
            return replace(fitted, complete=complete)


def discover(gap: Gap) -> Fitting:
    """Denoise freely for a few steps, find where the canvas goes on with the suffix, pin it there, go on warm."""
    matched = gap.suffix[:MATCHED]
    width = min(gap.budget + len(matched), gap.model.info.canvas_length)
    canvas = gap.noise_canvas([width], pinned=False)
    feelers = yield from gap.denoise(canvas, widths=[width], looks=True, max_steps=FEELERS, queried=matched)
    places = [place for place in suffix_places(feelers, matched) if place[0] <= gap.room]
    found = places[0][1] > FOUND if places else not matched
    if not found and gap.budget > gap.room:
        return Fitted(canvas=feelers, widths=(feelers.lengths[0],), slack=False, complete=False)
    widths = [width for width, _ in places[: max(gap.request.n, TRIED)]] or [min(gap.budget, gap.room)]
    if gap.looks_are_answers and gap.should_stop():
        # No canvas is better than the one that there was time for.
        return Fitted(canvas=feelers, widths=(widths[0],), slack=False, complete=True)
    return (yield from _fit(gap, widths, slack=False, start=feelers))


def free(gap: Gap, width: int) -> Fitting:
    """`width` tokens after the context, without a suffix; complete if they end before that."""
    canvas = yield from gap.denoise(gap.noise_canvas([width], pinned=False), widths=[width])
    ends = gap.model.info.pad_id in canvas.row(0) or not bool(canvas.confidence.all())
    return Fitted(canvas=canvas, widths=(width,), slack=False, complete=ends)


def suffix_places(canvas: Canvas, suffix: Sequence[int]) -> list[tuple[int, float]]:
    """(gap width, mean log-probability of the suffix after it) of an unpinned canvas, likeliest first."""
    if not suffix:
        return []
    likelihood = _likelihood(canvas, suffix)  # [L, S]
    length = likelihood.shape[0]
    diagonals = [likelihood[at : at + len(suffix)].diagonal() for at in range(length - len(suffix) + 1)]
    scores = torch.stack([diagonal.mean() for diagonal in diagonals])
    order = torch.argsort(scores, descending=True, stable=True).tolist()
    chosen: list[int] = []
    for place in order:
        if all(abs(place - other) > 1 for other in chosen):
            chosen.append(place)
    return [(place, float(scores[place])) for place in chosen]


def _ended(gap: Gap, canvas: Canvas, row: int, width: int) -> bool:
    """Whether a row found the gap's end; what it says again of the suffix becomes unused."""
    ids, pad = canvas.row(row)[:width], gap.model.info.pad_id
    end = met(ids, gap.suffix)
    if end is not None:
        canvas.best[row, end:width] = canvas.ids[row, end:width] = pad
    return end is not None or pad in ids


def _fit(
    gap: Gap,
    widths: Sequence[int],
    *,
    slack: bool,
    full: Sequence[int] = (),
    start: Canvas | None = None,
    race: Race | None = None,
) -> Fitting:
    canvas = gap.noise_canvas(widths)
    if start is not None:
        _warm(canvas, widths, start)
    if gap.guess:
        for row, width in enumerate(widths):
            gap.suggest(canvas, row, gap.guess[:width])
    canvas = yield from gap.denoise(canvas, widths=widths, slack=slack, full=full, race=race)
    return Fitted(canvas=canvas, widths=tuple(widths), slack=slack, complete=True)


def _warm(canvas: Canvas, widths: Sequence[int], start: Canvas) -> None:
    """Begin with what stands on another canvas instead of noise."""
    for row, width in enumerate(widths):
        canvas.ids[row, :width] = torch.where(start.accepted | start.known, start.best, start.ids)[0, :width]
        canvas.best[row, :width] = start.best[0, :width]


def _likelihood(canvas: Canvas, suffix: Sequence[int]) -> Tensor:
    """Log-probability [L, S] of each suffix token at each position of the first canvas."""
    wanted = torch.tensor(suffix, device=canvas.ids.device)
    same = canvas.best[0][:, None] == wanted
    likelihood = torch.where(same, torch.tensor(0.0), torch.tensor(FLOOR))
    if canvas.choices:
        said = [[max(choices.get(token, FLOOR), FLOOR) for token in suffix] for choices in canvas.choices]
        likelihood[~canvas.pinned[0]] = torch.tensor(said)
        return likelihood
    if canvas.log_queried is None:
        return likelihood
    return torch.where(canvas.open[0][:, None], canvas.log_queried[0].clamp(min=FLOOR), likelihood)
