"""A gap as the causal encoder reads it behind a context: see engine.models.prompts.layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.models.kv_cache import EncodedContext
from engine.models.prompts.layout import reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Tokens that follow a context, none of which anybody else sees."""

    length: int
    """Tokens of context."""
    ids: tuple[int, ...]
    positions: tuple[int, ...]
    question: int
    """Its place in `ids`; behind it is the last token of the context once more, then the gap."""

    @classmethod
    def of(cls, known: EncodedContext, pinned: Sequence[int], gap: Sequence[int]) -> Reading:
        ids, positions = zip(*reading(pinned, gap, known.store.ids[known.length - 1], known.length), strict=True)
        return cls(length=known.length, ids=ids, positions=positions, question=len(ids) - len(gap) - 2)

    def with_token(self, token: int) -> Reading:
        """With one more of the gap."""
        return replace(self, ids=(*self.ids, token), positions=(*self.positions, self.positions[-1] + 1))

    def mask(self, read: int, window: int | None, device: torch.device, dtype: torch.dtype) -> Tensor:
        """What is added to scores [1, 1, T - read, S + T], 0 or -inf: each token sees what is before it; but the last
        token of the context is seen once. S tokens of context are in the window of any."""
        first = 0 if window is None else max(0, self.length - window)
        own = torch.tensor(self.positions, device=device)
        keys = torch.cat((torch.arange(first, self.length, device=device), own))
        hidden = torch.ones(len(own), len(keys), dtype=torch.bool, device=device).triu_(self.length - first + 1)
        hidden[self.question + 1 :, self.length - first - 1] = True
        if window is not None:
            hidden |= keys[None, :] <= own[:, None] - window
        mask = torch.zeros(1, 1, *hidden.shape, dtype=dtype, device=device)
        return mask.masked_fill_(hidden, -torch.inf)[:, :, read:]
