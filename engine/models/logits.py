"""Logits that are never held all at once: hidden states, and the head that computes logits block by block.

For 262,144 tokens the logits of 256 positions take 268 MB in float32, and so does everything computed from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from engine.models.products import linear, reordered, summed

_NUMBERS = 1 << 21
"""Logits of a block: 8 MB; a pass over them holds a few times as much."""
_FEWEST = 1024
"""Least number of tokens of a block."""
_MOST_TWICE_NBYTES = 32 << 20
"""Largest embedding table that is kept in a second order, in which averaging it is faster."""

LogitsOf = Callable[[Tensor, slice | Tensor], Tensor]
"""(hidden states [F, E], W of the tokens) -> their float32 logits [F, W], in memory of their own."""


class Head:
    """The last part of a model. Constant."""

    def __init__(self, logits: LogitsOf, size: int, table: Tensor | None = None) -> None:
        """`size`: of the vocabulary; `table`: embeddings [V, E] that self-conditioning averages, if the model has
        any."""
        self.logits = logits
        self.size = size
        self.table = torch.empty(size, 0) if table is None else table

    @cached_property
    def mean(self) -> Tensor:
        """The mean embedding [E] of all tokens, in float32."""
        # Not at once, as that would be a copy of the table in float32.
        return torch.stack([part.float().sum(dim=0) for part in self.table.split(_FEWEST)]).sum(dim=0) / self.size

    def summed(self, weights: Tensor, first: int) -> Tensor:
        """Averages [F, E], in float32, of embeddings of the tokens from `first` on, by weights [F, W]."""
        if weights.shape[1] == self.size and self._by_feature is not None:
            return linear(weights, self.table.t(), None, self._by_feature)
        return summed(weights, self.table[first : first + weights.shape[1]])

    @cached_property
    def _by_feature(self) -> Tensor | None:
        return reordered(self.table.t()) if self.table.nbytes <= _MOST_TWICE_NBYTES else None

    def guessed(self, tokens: Tensor, logit: float) -> Tensor:
        """Embeddings [F, E] averaged as if `tokens` [F] had this logit and all others 0; -1 stands for no token."""
        odds = torch.tensor(logit, device=self.table.device).exp()
        own = (odds - 1) * self.table[tokens.clamp(min=0)].float() + self.size * self.mean
        return torch.where(tokens[:, None] < 0, self.mean, own / (odds - 1 + self.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Logits:
    """Raw float32 logits of F positions over V tokens, computed anew at each use."""

    hidden: Tensor
    """[F, E]"""
    head: Head

    def blocks(self) -> Iterator[tuple[int, Tensor]]:
        """All logits block by block: the first token of a block, and logits [F, W] in memory of their own."""
        width = max(_NUMBERS // max(len(self.hidden), 1), _FEWEST)
        for first in range(0, self.head.size, width):
            yield first, self.head.logits(self.hidden, slice(first, min(first + width, self.head.size)))

    def of(self, tokens: Tensor) -> Tensor:
        """Logits [F, W] of some tokens [W]."""
        width = max(_NUMBERS // max(len(self.hidden), self.hidden.shape[1]), 1)
        return torch.cat([self.head.logits(self.hidden, part) for part in tokens.split(width)], dim=1)

    def whole(self) -> Tensor:
        """All logits [F, V], for few positions or a small vocabulary."""
        return self.head.logits(self.hidden, slice(0, self.head.size))

    def __getitem__(self, chosen: slice | Tensor) -> Logits:
        """The logits of some positions."""
        return Logits(hidden=self.hidden[chosen], head=self.head)

    def split(self, sizes: int | Sequence[int]) -> list[Logits]:
        """The logits in groups of so many positions."""
        return [Logits(hidden=part, head=self.head) for part in self.hidden.split(sizes)]


def dense(logits: Tensor) -> Logits:
    """Logits [F, V] that exist already, as `Logits`."""
    return Logits(hidden=logits, head=Head(columns, logits.shape[1]))


def columns(logits: Tensor, tokens: slice | Tensor) -> Tensor:
    """Logits [F, V] that exist already, as `LogitsOf`."""
    return logits[:, tokens].float().clone()


def log_probabilities(logits: Logits, tokens: Tensor) -> Tensor:
    """Log-probabilities [F] of tokens [F], one at each position."""
    total = own = torch.full((len(tokens),), -torch.inf, device=tokens.device)
    for first, block in logits.blocks():
        last = first + block.shape[1]
        here = block.gather(1, (tokens - first).clamp(0, block.shape[1] - 1)[:, None])[:, 0]
        own = torch.where((tokens >= first) & (tokens < last), here, own)
        total = torch.logaddexp(total, block.logsumexp(dim=-1))
    return own - total
