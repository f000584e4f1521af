"""Canvases that another machine takes through all their steps: what is ours is put back when they return.

That machine knows pinned tokens and nothing else of what we want. So what may not stand in a gap is looked for
afterwards, and asked again with all but that pinned; what still may not stand there is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.common.request import Draft
from engine.fill.canvas import Canvas, reopened
from engine.fill.denoise import Denoising, rows_of
from engine.fill.executor import Step
from engine.models.base import READ_ON, CanvasOrder, CanvasReply, DenoisesElsewhere, Noise

CHOICES = 20
"""Tokens a position, where a canvas is only looked at: the most that vLLM tells."""
NEIGHBOURS = 1
"""Tokens beside a forbidden one that are asked for again with it."""
_UNLIKELY = 1e-6
"""Confidence in a suffix token instead of which the model would have another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """What holds in a gap, whoever denoises it."""

    widths: Sequence[int]
    """Of the gap, by row."""
    head: tuple[int, ...]
    """Tokens that a gap begins with; whatever spells the same would do as well, but can't be asked for."""
    banned: frozenset[int]
    pad_id: int
    whole: bool
    """Whether a part of a gap is no answer."""
    looks: bool
    """Whether it is done for what is said of each position."""


def denoise_elsewhere(
    canvas: Canvas,
    model: DenoisesElsewhere,
    ours: Ours,
    noise: Noise,
    generator: torch.Generator,
    *,
    max_steps: int,
    left_ms: Callable[[], float],
    should_stop: Callable[[], bool],
    draft: Callable[[Canvas], Draft],
) -> Denoising:
    """Have `canvas` denoised in place. A pinned position never changes. A row whose reply does not come in time stays
    as it was, with confidence 0 where it is noise.

    Yields what it waits for, and reads its result itself. Raises EngineError where the other machine fails.
    """
    _begin_with(canvas, ours)
    yield from _asked(canvas, model, ours, max_steps, left_ms, draft)
    late = should_stop()
    wrong = _banned(canvas, ours)
    if wrong.any():
        if not late:
            again = reopened(canvas, _widened(wrong) & ~canvas.pinned, noise, generator)
            yield from _asked(again, model, ours, max_steps, left_ms, draft)
            should_stop()
            canvas.best, canvas.confidence = again.best, again.confidence
        _cut(canvas, ours)
    canvas.ids = canvas.best.clone()
    return canvas


def _asked(
    canvas: Canvas,
    model: DenoisesElsewhere,
    ours: Ours,
    max_steps: int,
    left_ms: Callable[[], float],
    draft: Callable[[Canvas], Draft],
) -> Denoising:
    rows = rows_of(canvas)
    asked = canvas.open.any(dim=1).nonzero()[:, 0].tolist()
    if not asked:
        return canvas
    orders = [_order(canvas, row) for row in asked]
    replies = model.denoise(orders, max_steps=max_steps, choices=CHOICES if ours.looks else 0, within_ms=left_ms())
    try:
        yield Step(rows=rows, draft=lambda: draft(canvas), elsewhere=replies)
        for row, reply in zip(asked, replies.result(), strict=True):
            if reply is not None:
                _take(canvas, row, ours.widths[row], reply)
        if ours.looks:
            canvas.choices = [
                choices
                for row, reply in zip(asked, replies.result(), strict=True)
                for at, choices in enumerate(reply.choices if reply else [{}] * canvas.lengths[row])
                if canvas.open[row, at]
            ]
    finally:
        replies.cancel()
    canvas.step += 1
    canvas.open = torch.zeros_like(canvas.open)
    return canvas


def _order(canvas: Canvas, row: int) -> CanvasOrder:
    length = canvas.lengths[row]
    return CanvasOrder(
        context=canvas.contexts[row],
        ids=tuple(canvas.ids[row, :length].tolist()),
        pinned=tuple((~canvas.open[row, :length]).nonzero()[:, 0].tolist()),
    )


def _take(canvas: Canvas, row: int, width: int, reply: CanvasReply) -> None:
    """Put a reply on the canvas, but for what is pinned; of that it tells how well it fits."""
    length = canvas.lengths[row]
    open_ = canvas.open[row, :length]
    said = torch.tensor(reply.ids, dtype=canvas.ids.dtype)
    likely = torch.tensor(reply.log_probabilities).clamp(max=0.0).exp().clamp(min=_UNLIKELY)
    fits = torch.where(said == canvas.best[row, :length], likely, torch.tensor(_UNLIKELY))
    canvas.best[row, :length] = torch.where(open_, said, canvas.best[row, :length])
    canvas.confidence[row, :length] = torch.where(open_, likely, canvas.confidence[row, :length])
    # The suffix's first tokens tell whether the gap is as wide as that.
    behind = slice(width, min(width + READ_ON, length))
    canvas.confidence[row, behind] = fits[behind]
    canvas.accepted[row, :length] = open_


def _begin_with(canvas: Canvas, ours: Ours) -> None:
    """Pin the gap's first tokens where they are open."""
    for row, width in enumerate(ours.widths):
        size = min(len(ours.head), width)
        if size and not canvas.pinned[row, 0]:
            canvas.ids[row, :size] = canvas.best[row, :size] = torch.tensor(ours.head[:size])
            canvas.pinned[row, :size] = canvas.known[row, :size] = True
            canvas.open[row, :size] = False
            canvas.confidence[row, :size] = 1.0


def _banned(canvas: Canvas, ours: Ours) -> torch.Tensor:
    """Positions [B, L] in gaps that hold what may not stand there, unless it was there from the start."""
    wrong = torch.zeros_like(canvas.pinned)
    if ours.banned:
        wrong = torch.isin(canvas.best, torch.tensor(sorted(ours.banned))) & ~canvas.pinned
    for row, width in enumerate(ours.widths):
        wrong[row, width:] = False
    # A row that never got a reply holds noise.
    return wrong & (canvas.confidence > 0)


def _widened(places: torch.Tensor) -> torch.Tensor:
    """Places [B, L] and NEIGHBOURS on either side."""
    span = 2 * NEIGHBOURS + 1
    near = torch.nn.functional.max_pool1d(places.float()[:, None], span, stride=1, padding=NEIGHBOURS)
    return near[:, 0] > 0


def _cut(canvas: Canvas, ours: Ours) -> None:
    """End each gap before what may not stand there; where that leaves nothing, or not all, it is no answer."""
    wrong = _banned(canvas, ours)
    for row in wrong.any(dim=1).nonzero()[:, 0].tolist():
        width = ours.widths[row]
        first = int(wrong[row].nonzero()[0])
        if ours.whole or first <= len(ours.head):
            canvas.confidence[row, :width] = 0.0
        else:
            canvas.best[row, first:width] = ours.pad_id
