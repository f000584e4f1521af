"""Finds the end of a gap that is wider than needed.

Unused slots stand at the end of their gap, never inside its text. The first one is accepted once all slots before it
hold text; earlier, it would draw more of them after it and cut the text short.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.fill.canvas import Canvas
from engine.fill.constraints import Bans, Constrain
from engine.fill.sampling import Mask
from engine.models.logits import Logits

SURELY = 8
"""Tokens of the suffix that are no coincidence anywhere: there the row ran on into the suffix."""
MET = 4
"""Tokens of the suffix that are no coincidence at the end of a row."""


def end_once(canvas: Canvas, pad_id: int) -> Constrain:
    """No unused slot before an accepted token of its gap; after an unused slot only unused ones."""
    begins, ends = _last(canvas.pinned), _next(canvas.pinned)
    pad = torch.tensor([pad_id])

    def constrain(bans: Bans, logits: Logits, places: Tensor) -> None:
        accepted = canvas.known & ~canvas.pinned
        if not accepted.any():
            return
        inside = _next(accepted & (canvas.ids != pad_id)) < ends
        last_end = _last(accepted & (canvas.ids == pad_id)) > begins
        rows, positions = places.unbind(dim=1)
        bans.out.append((inside[rows, positions], pad))
        bans.only.append((last_end[rows, positions], pad))

    return constrain


def end_after_text(canvas: Canvas, pad_id: int) -> Mask:
    """Unused slots wait for text; in a gap whose open slots hold none, all of them are accepted at once."""
    gaps = canvas.pinned.cumsum(dim=1)  # numbers what lies between pinned tokens
    rows, length = gaps.shape

    def mask(chosen: Tensor) -> Tensor:
        text = canvas.open & (chosen != pad_id)
        said = gaps.new_zeros(rows, length + 1).scatter_add_(1, gaps, text.long())
        return text | (canvas.open & (said.gather(1, gaps) == 0))

    return mask


def met(ids: Sequence[int], suffix: Sequence[int]) -> int | None:
    """Where the `ids` of a gap continue with the suffix, by its first SURELY tokens or, at their end, by MET; None:
    nowhere."""
    said, wanted = [*ids], [*suffix[:SURELY]]
    for start in range(len(said)):
        size = min(len(wanted), len(said) - start)
        if size >= MET and said[start : start + size] == wanted[:size]:
            return start
    return None


def _next(marked: Tensor) -> Tensor:
    """The place of the next marked position after each [B, L]; without one the canvas's end."""
    size = marked.shape[1]
    positions = torch.arange(size, device=marked.device).expand(marked.shape)
    nearest = torch.where(marked, positions, size).flip(1).cummin(dim=1).values.flip(1)
    return torch.nn.functional.pad(nearest[:, 1:], (0, 1), value=size)


def _last(marked: Tensor) -> Tensor:
    """The place of the last marked position before each [B, L]; -1 without one."""
    positions = torch.arange(marked.shape[1], device=marked.device).expand(marked.shape)
    nearest = torch.where(marked, positions, -1).cummax(dim=1).values
    return torch.nn.functional.pad(nearest[:, :-1], (1, 0), value=-1)
