"""Logits that are never there all at once: hidden states, and the head that makes logits of them block by block.

Over 262,144 tokens the logits of 256 positions take 268 MB in float32, and so does each thing that is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from engine.models.products import linear, reordered, summed

_NUMBERS = 1 << 21
"""Logits at a time: 8 MB, and a pass over them holds a few times as much."""
_FEWEST = 1024
"""Tokens of a block, at the least."""
_MOST_TWICE_NBYTES = 32 << 20
"""Of an embedding table that is kept in a second order, in which averages of all of it are faster."""

LogitsOf = Callable[[Tensor, slice | Tensor], Tensor]
"""(Hidden states [F, E], W of the tokens) -> their float32 logits [F, W], in memory of their own."""


class Head:
    """What a model ends in. Constant."""

    def __init__(self, logits: LogitsOf, size: int, table: Tensor | None = None) -> None:
        """`size`: of the vocabulary; `table`: embeddings [V, E] whose averages condition a further step, if any do."""
        self.logits = logits
        self.size = size
        self.table = torch.empty(size, 0) if table is None else table

    @cached_property
    def mean(self) -> Tensor:
        """The embedding of any token at all [E], in float32."""
        # Not at once, as that would be a copy of the table in float32.
        return torch.stack([part.float().sum(dim=0) for part in self.table.split(_FEWEST)]).sum(dim=0) / self.size

    def summed(self, weights: Tensor, first: int) -> Tensor:
        """Embeddings of the tokens from `first` on, by weights [F, W]: [F, E] in float32."""
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
    """Of F positions over a vocabulary of V tokens, raw, in float32, made anew each time that they are looked at."""

    hidden: Tensor
    """[F, E]"""
    head: Head

    def blocks(self) -> Iterator[tuple[int, Tensor]]:
        """All of them: the first token of each block, and logits [F, W] in memory of their own."""
        width = max(_NUMBERS // max(len(self.hidden), 1), _FEWEST)
        for first in range(0, self.head.size, width):
            yield first, self.head.logits(self.hidden, slice(first, min(first + width, self.head.size)))

    def of(self, tokens: Tensor) -> Tensor:
        """Those of some tokens [W] alone: [F, W]."""
        width = max(_NUMBERS // max(len(self.hidden), self.hidden.shape[1]), 1)
        return torch.cat([self.head.logits(self.hidden, part) for part in tokens.split(width)], dim=1)

    def whole(self) -> Tensor:
        """[F, V], for few positions or a small vocabulary."""
        return self.head.logits(self.hidden, slice(0, self.head.size))

    def __getitem__(self, chosen: slice | Tensor) -> Logits:
        """Those of some positions."""
        return Logits(hidden=self.hidden[chosen], head=self.head)

    def split(self, sizes: int | Sequence[int]) -> list[Logits]:
        """Those of so many positions each, one after the other."""
        return [Logits(hidden=part, head=self.head) for part in self.hidden.split(sizes)]


def dense(logits: Tensor) -> Logits:
    """Logits [F, V] that are there already."""
    return Logits(hidden=logits, head=Head(columns, logits.shape[1]))


def columns(logits: Tensor, tokens: slice | Tensor) -> Tensor:
    """Of logits [F, V] that are there already, as `LogitsOf`."""
    return logits[:, tokens].float().clone()


def log_probabilities(logits: Logits, tokens: Tensor) -> Tensor:
    """Of one token at each position: [F] for tokens [F]."""
    total = own = torch.full((len(tokens),), -torch.inf, device=tokens.device)
    for first, block in logits.blocks():
        last = first + block.shape[1]
        here = block.gather(1, (tokens - first).clamp(0, block.shape[1] - 1)[:, None])[:, 0]
        own = torch.where((tokens >= first) & (tokens < last), here, own)
        total = torch.logaddexp(total, block.logsumexp(dim=-1))
    return own - total
