"""A canvas whose gaps became wider or narrower between two steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.decoding.canvas import Canvas
from engine.models.base import Noise


def rearranged(
    canvas: Canvas, sources: Sequence[Sequence[int | None]], noise: Noise, generator: torch.Generator
) -> Canvas:
    """New canvases, row by row: each position takes over what stood at its source, None is a fresh open one.

    What conditioned the next step is forgotten, as its positions moved; steps are counted from 0 again.
    """
    width = max(map(len, sources))
    device = canvas.ids.device
    index = torch.tensor(
        [[-1 if at is None else at for at in row] + [-2] * (width - len(row)) for row in sources], device=device
    ).reshape(len(sources), width)
    fresh, beyond = index == -1, index == -2

    def moved(part: Tensor, anew: Tensor | bool | float, behind: bool | float) -> Tensor:
        there = part.gather(1, index.clamp(min=0))
        there = torch.where(fresh, anew if isinstance(anew, Tensor) else torch.full_like(there, anew), there)
        return there.masked_fill(beyond, behind)

    drawn = noise.draw(index.shape, generator)
    return Canvas(
        contexts=canvas.contexts,
        lengths=[len(row) for row in sources],
        ids=moved(canvas.ids, drawn, 0),
        pinned=moved(canvas.pinned, False, True),
        known=moved(canvas.known, False, True),
        accepted=moved(canvas.accepted, False, False),
        best=moved(canvas.best, drawn, 0),
        confidence=moved(canvas.confidence, 0.0, 1.0),
        open=moved(canvas.open, True, False),
    )
