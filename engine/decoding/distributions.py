"""What the model says of the open positions: one look at its logits, which everything that decides shares."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_LEAST = -1e4
"""Log-probability of what can't be, in a sum where it counts for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributions:
    """Of F positions over a vocabulary of V tokens."""

    log_probabilities: Tensor
    """[F, V]"""
    probabilities: Tensor
    """[F, V]"""
    likeliest: Tensor
    """Tokens [F]."""

    def __getitem__(self, chosen: Tensor) -> Distributions:
        """Those of some positions, bool [F]."""
        return Distributions(
            log_probabilities=self.log_probabilities[chosen],
            probabilities=self.probabilities[chosen],
            likeliest=self.likeliest[chosen],
        )

    def entropy(self) -> Tensor:
        """Nats [F]."""
        return -(self.probabilities * self.log_probabilities.clamp(min=_LEAST)).sum(dim=-1)


def distributions(logits: Tensor) -> Distributions:
    """Of processed float32 logits [F, V]."""
    log_probabilities = logits.log_softmax(dim=-1)
    return Distributions(
        log_probabilities=log_probabilities, probabilities=log_probabilities.exp(), likeliest=likeliest(logits)
    )


def likeliest(logits: Tensor) -> Tensor:
    """The token with the largest of its logits [F, V]; [F]."""
    if logits.device.type != "cpu":
        return logits.argmax(dim=-1)
    # torch takes ten times as long there.
    return torch.from_numpy(logits.detach().numpy().argmax(axis=-1))
