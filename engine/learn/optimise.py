"""Optimisers and their schedule: Muon for matrices inside layers, AdamW for the rest; warm-up, plateau, decay."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engine.models.products import prefers_bfloat16

WARM_UP = 100
"""Steps."""
MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
_lists: Any = torch
"""torch's operators on lists of tensors, which its own optimisers use: one launch for many tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Peak learning rates."""

    matrices: float = 0.04
    rest: float = 0.006


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
        self.steps = 0
        """Number of steps; a restored optimiser goes on counting."""

    def step(self, scale: float) -> None:
        """Apply the gradients at `scale` times the peak rates, and clear them."""
        nn.utils.clip_grad_norm_(self._parameters, 1.0)
        for part, rate in self._parts:
            for group in part.param_groups:
                group["lr"] = rate * scale
            part.step()
            part.zero_grad(set_to_none=True)
        self.steps += 1

    def state(self) -> list[dict[str, Any]]:
        """The state for a checkpoint."""
        return [part.state_dict() for part, _ in self._parts]

    def restore(self, state: list[dict[str, Any]]) -> None:
        for (part, _), saved in zip(self._parts, state, strict=True):
            part.load_state_dict(saved)
        # Counted by the parts too, but a GPU would have to be waited for to ask them.
        counts = self._parts[-1][0].state.values()
        self.steps = int(next(iter(counts))["step"]) if counts else 0


def apply(optimiser: torch.optim.Optimizer, parameters: Iterable[nn.Parameter], rate: float) -> None:
    """Apply the gradients, clipped to a norm of 1, at a learning rate, and clear them."""
    nn.utils.clip_grad_norm_(parameters, 1.0)
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def schedule(step: int, left: float, warm_up: int = WARM_UP) -> float:
    """The share of the peak rates: linear warm-up over so many steps, a plateau, then `left`, which falls from 1 to
    0."""
    return min((step + 1) / warm_up, 1.0, max(0.0, left))


class BatchedMuon(torch.optim.Optimizer):
    """Muon for many matrices at once: Nesterov momentum, then each update becomes the nearest (half-)orthogonal matrix.

    Matrices of one shape are multiplied together, in a number format that suits the device. `torch.optim.Muon` takes
    one at a time, always in bfloat16; without bfloat16 units that takes as long as both passes of the small model.
    Mathematics and state are the same, so a checkpoint of either loads into the other. Source: Jordan et al., "Muon: An
    optimizer for hidden layers in neural networks" (2024).
    """

    def __init__(self, matrices: Sequence[Tensor], lr: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})

    # Nobody gives a closure, whose loss would be what is returned.
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Apply the gradients; a parameter without one stays as it is."""
        for group in self.param_groups:
            alike: defaultdict[torch.Size, list[Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape].append(matrix)
            for shape, matrices in alike.items():
                gradients: Any = [matrix.grad for matrix in matrices]
                buffers = [self._buffer(matrix) for matrix in matrices]
                _lists._foreach_lerp_(buffers, gradients, 1 - MOMENTUM)
                updates = orthogonal(torch.stack(_lists._foreach_lerp(gradients, buffers, MOMENTUM)))
                rate = group["lr"] * math.sqrt(max(1.0, shape[0] / shape[1]))
                _lists._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                _lists._foreach_add_(matrices, updates.to(matrices[0].dtype).unbind(), alpha=-rate)

    def _buffer(self, matrix: Tensor) -> Tensor:
        """The momentum of a parameter."""
        state = self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        return state["momentum_buffer"]


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices [M, R, C] with all singular values drawn towards 1, by Newton and Schulz' iteration."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.bfloat16() if prefers_bfloat16(matrices.device.type) else matrices.float()
    x = x.mT if tall else x
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
