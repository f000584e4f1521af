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
    """Tokens that follow a context, none of which anybody else sees: what stands behind a gap, the question how wide it
    is, and for each of several texts the last token of the context once more, then the text."""

    length: int
    """Tokens of context."""
    ids: tuple[int, ...]
    positions: tuple[int, ...]
    texts: tuple[int, ...]
    """The number of the text that a token belongs to, from 1 on; 0: it comes before all of them."""

    @classmethod
    def of(cls, known: EncodedContext, pinned: Sequence[int], texts: Sequence[Sequence[int]]) -> Reading:
        last, length = known.store.ids[known.length - 1], known.length
        asked = reading(pinned, (), last, length)[:-1]
        parts = [asked, *(reading((), text, last, length)[2:] for text in texts)]
        ids, positions = zip(*(each for part in parts for each in part), strict=True)
        numbers = tuple(number for number, part in enumerate(parts) for _ in part)
        return cls(length=length, ids=ids, positions=positions, texts=numbers)

    @property
    def question(self) -> int:
        """Its place in `ids`."""
        return self.texts.count(0) - 1

    def with_token(self, token: int) -> Reading:
        """With one more of the last text."""
        return replace(
            self,
            ids=(*self.ids, token),
            positions=(*self.positions, self.positions[-1] + 1),
            texts=(*self.texts, self.texts[-1]),
        )

    def mask(self, read: int, window: int | None, device: torch.device, dtype: torch.dtype) -> Tensor:
        """What is added to scores [1, 1, T - read, S + T], 0 or -inf: each token sees what is before it, but no other
        text; those of a text see the last token of the context once. S tokens of context are in the window of any."""
        first = 0 if window is None else max(0, self.length - window)
        own, texts = torch.tensor([self.positions, self.texts], device=device)
        keys = torch.cat((torch.arange(first, self.length, device=device), own))
        hidden = torch.zeros(len(own), len(keys), dtype=torch.bool, device=device)
        later = torch.ones(len(own), len(own), dtype=torch.bool, device=device).triu_(1)
        hidden[:, self.length - first :] = later | ((texts > 0) & (texts != texts[:, None]))
        hidden[texts > 0, self.length - first - 1] = True
        if window is not None:
            hidden |= keys <= own[:, None] - window
        mask = torch.zeros(1, 1, *hidden.shape, dtype=dtype, device=device)
        return mask.masked_fill_(hidden, -torch.inf)[:, :, read:]
