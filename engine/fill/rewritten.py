"""Rewriting on one canvas: it starts from the old text, of which a share is noise.

The loop is entered where such a canvas would be on its way from pure noise (SDEdit, arXiv:2108.01073): with as many
steps left, at that temperature, and conditioned on the old text as if the model had predicted it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.fill.canvas import Canvas
from engine.fill.gap import Gap
from engine.fill.lengths.strategies import Fitted, Fitting
from engine.fill.tokens import OldTokens, old_tokens

ROWS = 4
"""Least number of canvases: they re-noise different parts, and give them different room."""
FEWEST_STEPS = 2
_CHANGES = (0, 2, -1, 5)
"""Slots added or removed, in turn, for models that leave no slot unused."""
_LONGEST_SPAN = 12
"""Most tokens of a re-noised span, while other text is left."""
_GROWTH = 0.5
"""Room that a re-noised span gets beyond its own width, as a share of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The beginning of one canvas, S slots."""

    old: tuple[int | None, ...]
    """The token of the old text in each slot; None: added room."""
    noised: tuple[bool, ...]
    kept: tuple[bool, ...]
    """Slots that must stay as they are."""


def rewritten(gap: Gap) -> Fitting:
    """The request's `old`, which must fit on a canvas, with a share of `strength` denoised again. The rest stays under
    absorbing noise, and may change under uniform noise."""
    request, info = gap.request, gap.model.info
    tokens = old_tokens(gap, request.old, request.keep)
    rng = random.Random(f"{request.seed}/{request.old}")
    rows = [_drawn_row(gap, tokens, index, rng) for index in range(max(request.n, ROWS))]
    canvas = _canvas(gap, rows)
    widths = [len(row.old) for row in rows]
    slack = info.length == "slack"
    steps = max(FEWEST_STEPS, math.ceil(request.strength * gap.sampling.max_steps))
    canvas = yield from gap.denoise(canvas, widths=widths, slack=slack, max_steps=steps)
    return Fitted(canvas=canvas, widths=tuple(widths), slack=slack, complete=True)


def _drawn_row(gap: Gap, tokens: OldTokens, index: int, rng: random.Random) -> Row:
    noised = noised_spans(tokens.kept, gap.request.strength, rng)
    if gap.model.info.length != "slack" and any(noised):
        return resized(tokens, noised, _CHANGES[index % len(_CHANGES)], gap.room)
    return roomy(tokens, noised, gap.room) if index % 2 else _row(tokens.kept, noised, tokens.ids)


def _canvas(gap: Gap, rows: Sequence[Row]) -> Canvas:
    """A canvas on which tokens that are not noise stand from the start. Unless all is noise, the old text conditions
    the first step."""
    absorbing = gap.model.info.noise.mask_id is not None
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
            gap.condition(canvas, index, row.old)
    return canvas


def noised_spans(kept: Sequence[bool], strength: float, rng: random.Random) -> list[bool]:
    """A share of the tokens that are not kept, at least one, in few coherent spans."""
    free = [at for at, stays in enumerate(kept) if not stays]
    wanted = max(1, round(strength * len(free))) if free else 0
    noised = [False] * len(kept)
    while wanted:
        length = min(wanted, rng.randint(1, _LONGEST_SPAN))
        at = rng.choice([place for place in free if not noised[place]])
        while length and at < len(kept) and not kept[at] and not noised[at]:
            noised[at] = True
            at, length, wanted = at + 1, length - 1, wanted - 1
    return noised


def roomy(tokens: OldTokens, noised: Sequence[bool], room: int) -> Row:
    """Each re-noised span followed by unused slots, at most `room` of them in all."""
    spare = max(0, room - len(tokens.ids))
    old: list[int | None] = []
    for at, token in enumerate(tokens.ids):
        old.append(token)
        if noised[at] and not (at + 1 < len(noised) and noised[at + 1]):
            extra = min(spare, 1 + math.ceil(_GROWTH * _run_before(noised, at)))
            old += [None] * extra
            spare -= extra
    return _row(tokens.kept, noised, old)


def resized(tokens: OldTokens, noised: Sequence[bool], change: int, room: int) -> Row:
    """The longest re-noised span with `change` slots added or removed, for models that leave no slot unused."""
    ends = [at for at in range(len(noised)) if noised[at] and not (at + 1 < len(noised) and noised[at + 1])]
    end = max(ends, key=lambda at: _run_before(noised, at))
    change = min(max(change, 1 - _run_before(noised, end)), room - len(tokens.ids))
    if change >= 0:
        return _row(tokens.kept, noised, [*tokens.ids[: end + 1], *[None] * change, *tokens.ids[end + 1 :]])
    left = [at for at in range(len(tokens.ids)) if not end + change < at <= end]
    return _row([tokens.kept[at] for at in left], [noised[at] for at in left], [tokens.ids[at] for at in left])


def _row(kept: Sequence[bool], noised: Sequence[bool], old: Sequence[int | None]) -> Row:
    flags = iter(zip(noised, kept, strict=True))
    placed = [(True, False) if token is None else next(flags) for token in old]
    return Row(old=tuple(old), noised=tuple(noisy for noisy, _ in placed), kept=tuple(stays for _, stays in placed))


def _run_before(noised: Sequence[bool], end: int) -> int:
    """The length of the re-noised span that ends at a token."""
    at = end
    while at >= 0 and noised[at]:
        at -= 1
    return end - at
