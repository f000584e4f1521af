"""Rewriting on one canvas: it starts from the text that stands there, of which a share is noise again.

The loop is entered where such a canvas would stand on its way from pure noise (SDEdit, arXiv:2108.01073): with as many
steps left, as cool, and conditioned on the old text as if the model had just said it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import torch

from engine.decoding.canvas import Canvas, seed
from engine.infill.gap import Gap
from engine.infill.lengths.strategies import Fitted, Fitting
from engine.infill.noising import Row, as_wide, noised_spans, resized, roomy
from engine.infill.tokens import OldTokens, old_tokens

ROWS = 4
"""Canvases at the least: they re-noise different parts, and give them different room."""
FEWEST_STEPS = 2
_CHANGES = (0, 2, -1, 5)
"""Slots more or fewer, by turns, for a model that leaves no slot unused."""


def rewritten(gap: Gap) -> Fitting:
    """The request's `old`, which must fit on a canvas, a share of `strength` of it denoised anew. The rest stays under
    absorbing noise, and may be reconsidered under uniform noise."""
    request, facts = gap.request, gap.model.info
    tokens = old_tokens(gap, request.old, request.keep)
    rng = random.Random(f"{request.seed}/{request.old}")
    rows = [_row(gap, tokens, index, rng) for index in range(max(request.n, ROWS))]
    canvas = _canvas(gap, rows)
    widths = [len(row.old) for row in rows]
    slack = facts.length == "slack"
    steps = max(FEWEST_STEPS, math.ceil(request.strength * facts.sampling.max_steps))
    canvas = yield from gap.denoise(canvas, widths=widths, slack=slack, max_steps=steps)
    return Fitted(canvas=canvas, widths=tuple(widths), slack=slack, complete=True)


def _row(gap: Gap, tokens: OldTokens, index: int, rng: random.Random) -> Row:
    noised = noised_spans(tokens.kept, gap.request.strength, rng)
    if gap.model.info.length != "slack" and any(noised):
        return resized(tokens, noised, _CHANGES[index % len(_CHANGES)], gap.room)
    return roomy(tokens, noised, gap.room) if index % 2 else as_wide(tokens, noised)


def _canvas(gap: Gap, rows: Sequence[Row]) -> Canvas:
    """What is no noise stands on it from the start. Unless all is noise, the old text conditions the first step."""
    noise = gap.model.info.noise
    absorbing = noise.mask_id is not None
    cells = [
        [
            token if stays or (absorbing and not noisy) else None
            for token, noisy, stays in zip(row.old, row.noised, row.kept, strict=True)
        ]
        for row in rows
    ]
    canvas = gap.canvas(cells)
    for index, row in enumerate(rows):
        places = [at for at, token in enumerate(row.old) if token is not None and not row.noised[at]]
        tokens = torch.tensor([row.old[at] for at in places], dtype=canvas.ids.dtype, device=canvas.ids.device)
        canvas.ids[index, places] = canvas.best[index, places] = tokens
        if gap.request.strength < 1:
            seed(canvas, index, row.old, noise.vocab_size)
    return canvas
