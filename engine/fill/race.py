"""Rows that start beside each other on one canvas, of which only the best go on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.fill.sampling import StepInfo

LEAST = 1e-12
"""Of a probability whose logarithm is taken."""
_EARLY = 0.5
"""How often the log-probability of tokens counts after a first step, when most of them are guesses."""


class Race:
    """Rows of different widths; the best ones after a first step go on."""

    def __init__(self, kept: int, odds: Sequence[float]) -> None:
        """`odds`: in nats, of each row by its width alone."""
        self._kept, self._odds = kept, torch.tensor(odds)
        self.rows: list[int] = [*range(len(odds))]
        """Those that are in it."""

    def lost(self, info: StepInfo) -> Tensor:
        """A `Settled` policy: the rows that dropped out."""
        out = torch.ones(len(self._odds), dtype=torch.bool, device=info.free.device)
        if len(self.rows) > self._kept:
            sure = (info.confidence.clamp(min=LEAST).log() * info.free).sum(dim=-1).cpu()
            order = torch.argsort(self._odds + _EARLY * sure, descending=True, stable=True)
            self.rows = sorted(order[: self._kept].tolist())
        out[self.rows] = False
        return out
