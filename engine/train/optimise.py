"""Optimisers and their schedule: Muon for matrices inside the layers, AdamW for the rest, warm-up, plateau, decay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from engine.train.muon import BatchedMuon

WARM_UP = 100
"""Steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Peak learning rates."""

    matrices: float = 0.02
    rest: float = 0.003


class Optimiser:
    """Both optimisers as one."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], rates: Rates) -> None:
        matrices = [p for name, p in parameters.items() if p.ndim == 2 and "embed_tokens" not in name]
        rest = [p for name, p in parameters.items() if p.ndim != 2 or "embed_tokens" in name]
        self._parts = [
            (BatchedMuon(matrices, lr=rates.matrices, weight_decay=0.01), rates.matrices),
            (torch.optim.AdamW(rest, lr=rates.rest, betas=(0.9, 0.97), weight_decay=0.0, fused=True), rates.rest),
        ]
        self._parameters = [*matrices, *rest]

    def step(self, scale: float) -> None:
        """Apply the gradients at `scale` times the peak rates, and clear them."""
        nn.utils.clip_grad_norm_(self._parameters, 1.0)
        for part, rate in self._parts:
            for group in part.param_groups:
                group["lr"] = rate * scale
            part.step()
            part.zero_grad(set_to_none=True)

    def state(self) -> list[dict[str, Any]]:
        """What a checkpoint keeps."""
        return [part.state_dict() for part, _ in self._parts]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """The inverse of `state`."""
        for (part, _), saved in zip(self._parts, state, strict=True):
            part.load_state_dict(saved)


def schedule(step: int, left: float, warm_up: int = WARM_UP) -> float:
    """Share of the peak rates: linear warm-up over so many steps, a plateau, and `left` of 1 to 0 while it falls."""
    return min((step + 1) / warm_up, 1.0, max(0.0, left))
