"""A gap that is wider than needed: where unused slots may stand, and what a row says that has none.

Unused slots stand at the end of their gap, never inside its text. A row that found no end may have run on into the
suffix, and then says it twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.canvas import Canvas
from engine.policies import Constrain, Permit


def spare_the_text(canvas: Canvas, pad_id: int) -> Constrain:
    """In front of a token that is taken no slot of the same gap is unused."""

    def constrain(logits: Tensor, places: Tensor) -> Tensor:
        text = canvas.known & ~canvas.pinned & (canvas.ids != pad_id)
        inside = _text_first(canvas, text)
        rows, positions = places.unbind(dim=1)
        logits[inside[rows, positions].to(logits.device), pad_id] = -torch.inf
        return logits

    return constrain


def from_the_end(canvas: Canvas, pad_id: int) -> Permit:
    """A slot is taken as unused only together with all slots behind it in the same gap."""

    def permit(chosen: Tensor) -> Tensor:
        tokens = torch.where(canvas.open, chosen, canvas.ids)
        text = ~canvas.pinned & (tokens != pad_id)
        return canvas.open & ~((tokens == pad_id) & _text_first(canvas, text))

    return permit


def run_on(ids: Sequence[int], suffix: Sequence[int]) -> int:
    """Tokens at the end of a gap's `ids` that say the beginning of the suffix again, at the most."""
    longest = min(len(ids), len(suffix))
    return next((size for size in range(longest, 0, -1) if [*ids[-size:]] == [*suffix[:size]]), 0)


def _text_first(canvas: Canvas, text: Tensor) -> Tensor:
    """Positions [B, L] that `text` stands behind in the same gap: before what is pinned, or the canvas ends."""
    return _next(text) < _next(canvas.pinned)


def _next(marked: Tensor) -> Tensor:
    """Where the next marked position behind each one is [B, L]; the canvas's end where there is none."""
    size = marked.shape[1]
    positions = torch.arange(size, device=marked.device).expand(marked.shape)
    nearest = torch.where(marked, positions, size).flip(1).cummin(dim=1).values.flip(1)
    return torch.nn.functional.pad(nearest[:, 1:], (0, 1), value=size)
