"""The width of a gap as the model grows and shrinks it, `expand`: one token asks for two slots, one gives its own up.

Source: "DreamOn: Diffusion Language Models For Code Infilling Beyond Fixed-size Canvas" (arXiv:2602.01326).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.fill.canvas import Canvas, rearranged
from engine.fill.constraints import forbid_in, in_turn
from engine.fill.denoise import Denoising
from engine.fill.gap import Gap
from engine.fill.lengths.calibrated import filled
from engine.fill.lengths.strategies import Fitted, Fitting
from engine.fill.sampling import Mask, entropy_bound

NEAR = 2
"""Widths on either side of one that was found by requests before text: such a width is sometimes off by one."""
BUDGET = 2
"""Most expansions for each token that the gap may be wide; without a limit a gap could grow and shrink for ever."""


def expand(gap: Gap) -> Fitting:
    """Step by step: denoise once, then give slots where they were asked for and take away those given up.

    Begins at each width of the model's, one row each. A model whose requests come first accepted its text while
    the width was still in question: its gap is filled anew at the widths that were found and near them.
    """
    info = gap.model.info
    most = min(gap.budget, gap.room)
    starts = [min(width, most) for width in info.widths]
    widths = starts + [starts[0]] * (gap.request.n - len(starts))
    canvas = gap.noise_canvas(widths)
    left = [BUDGET * most] * len(widths)
    while canvas.open.any():
        full = [row for row, width in enumerate(widths) if width >= most or left[row] <= 0]
        canvas = yield from _step(gap, canvas, widths, full)
        room = [min(budget, most - width) for budget, width in zip(left, widths, strict=True)]
        canvas, grown = _resized(gap, canvas, widths, room)
        left = [budget - more for budget, more in zip(left, grown, strict=True)]
        if gap.should_stop():
            break
    if info.requests_first and not gap.should_stop():
        return (yield from filled(gap, near(widths, most)))
    # Where time ran out, slots that are still empty or ask for more say nothing.
    canvas.best[(canvas.best == info.expand_id) | (canvas.best == info.noise.mask_id)] = info.pad_id
    return Fitted(canvas=canvas, widths=tuple(widths), slack=False, complete=True)


def _step(gap: Gap, canvas: Canvas, widths: Sequence[int], full: Sequence[int]) -> Denoising:
    info = gap.model.info
    assert info.expand_id is not None
    constraints = gap.constraints(slack=False, requests=[info.expand_id, info.pad_id])
    return (
        yield from gap.denoise(
            canvas,
            widths=widths,
            max_steps=1,
            constrain=in_turn(*constraints, forbid_in(full, info.expand_id)),
            accept=entropy_bound(gap.sampling.entropy_bound),
            mask=_requests_first(canvas, [info.expand_id, info.pad_id]) if info.requests_first else None,
            # As many rows are greedy as there were widths to begin with.
            greedy_rows=len(info.widths),
        )
    )


def near(found: Sequence[int], most: int) -> list[int]:
    """The widths that were found, then those beside them."""
    beside = [width + more for more in range(-NEAR, NEAR + 1) for width in found]
    return list(dict.fromkeys(width for width in (*found, *beside) if 1 <= width <= most))


def _requests_first(canvas: Canvas, requests: Sequence[int]) -> Mask:
    """Accept no text in a row while one of its slots requests another width."""

    def mask(tokens: Tensor) -> Tensor:
        asking = canvas.open & torch.isin(tokens, torch.tensor(requests, device=tokens.device))
        return torch.where(asking.any(dim=-1, keepdim=True), asking, canvas.open)

    return mask


def _resized(gap: Gap, canvas: Canvas, widths: list[int], room: Sequence[int]) -> tuple[Canvas, list[int]]:
    """The canvas with the gap widths that the last step requested, `widths` updated; and the slots that each row
    gained."""
    sources: list[list[int | None]] = []
    grown: list[int] = []
    for row, width in enumerate(widths):
        slots, more = _slots(gap, canvas, row, room[row])
        sources.append([*slots, *range(width, canvas.lengths[row])])
        widths[row] = len(slots)
        grown.append(more)
    return rearranged(canvas, sources, gap.model.info.noise, gap.generator), grown


def _slots(gap: Gap, canvas: Canvas, row: int, room: int) -> tuple[list[int | None], int]:
    """The source of each slot of a row's new gap, None for a fresh one, and the number of slots added.

    Requests in one step are met if a token that stays stands between them; the others are predicted again. A slot that
    gives itself up removes the masks after it, as the model was trained with unused slots at the end of a gap.
    """
    info = gap.model.info
    width = canvas.lengths[row] - len(gap.suffix)
    ids, accepted, known = (part[row, :width].tolist() for part in (canvas.ids, canvas.accepted, canvas.known))
    slots: list[int | None] = []
    added, independent, swept = 0, True, False
    for at, token in enumerate(ids):
        requested = accepted[at] and token in (info.expand_id, info.pad_id)
        if swept and (requested or not known[at]):
            continue
        if requested and token == info.pad_id and independent:
            swept = True
        elif requested and token == info.expand_id and independent and added < room:
            slots += [None, None]
            added, independent = added + 1, False
        elif requested:
            slots.append(None)
        else:
            slots.append(at)
            independent = independent or known[at]
    return slots, added
