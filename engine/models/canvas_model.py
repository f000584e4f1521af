"""What the families of text-diffusion models share: steps that compute what is in question, in one ragged pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

from engine.checkpoints.working import logits_nbytes
from engine.models.base import ModelInfo, Rows
from engine.models.kv_cache import KVCache, Part, Reuse, attend_to, cache_budget, chunks
from engine.models.network import Attend, Network
from engine.models.tokenizer import PromptLayout

N = TypeVar("N", bound=Network)


class CanvasModel(ABC, Generic[N]):
    """A resident checkpoint, but for what its family computes."""

    remembers = True
    """Whether steps reuse what was computed before; without, each step computes everything."""

    def __init__(self, network: N, info: ModelInfo, prompt: PromptLayout, reuse: Reuse) -> None:
        self.info = info
        self.vocabulary = prompt.vocabulary
        self.tokenize = prompt.tokenize
        self.prompt = prompt.lay_out
        self.network = network
        network.lay_out()
        self._reuse = reuse
        self.forget()

    def detokenize(self, ids: Sequence[int]) -> str:
        return self.vocabulary.text(ids)

    @abstractmethod
    def parts(self, rows: Rows) -> list[Part]:
        """The sequences of `rows`, one each."""

    @abstractmethod
    def hidden(self, parts: Sequence[Part], ids: Tensor, positions: Tensor, attend: Attend, asked: Tensor) -> Tensor:
        """Hidden states [1, F, E] of the F asked ones of the tokens [1, T] that are computed of the parts."""

    @torch.inference_mode()
    def step(self, rows: Rows) -> Tensor:
        """Raw float32 logits [F, V] of the open positions, row by row."""
        distinct: dict[object, Part] = {}
        parts: list[Part] = []
        for row, part in enumerate(self.parts(rows)):
            # First steps over the same canvas say the same.
            same = row if rows.conditioned[row] else (id(part.context), tuple(part.ids), tuple(part.open))
            parts.append(distinct.setdefault(same, part))
        computed = list(distinct.values())
        if self.remembers:
            self.cache.plan(computed)
        logits = dict(zip(computed, self.logits(computed), strict=True))
        if self.remembers:
            self.cache.keep(computed)
        return torch.cat([logits[part] for part in parts])

    def logits(self, parts: Sequence[Part]) -> Iterator[Tensor]:
        """Of the asked places [F, V], part by part."""
        device = self.network.device
        for chunk in chunks(parts):
            ids = [part.ids[at] for part in chunk for at in part.places]
            positions = [part.start + at for part in chunk for at in part.places]
            asked, before = list[int](), 0
            for part in chunk:
                index = {place: before + at for at, place in enumerate(part.places)}
                asked += [index[place] for place in part.asked]
                before += len(index)
            hidden = self.hidden(
                chunk,
                torch.tensor([ids], device=device),
                torch.tensor([positions], device=device),
                attend_to(self.network, chunk),
                torch.tensor(asked, dtype=torch.int64, device=device),
            )
            yield from self.network.logits(hidden[0]).split([len(part.asked) for part in chunk])

    def forget(self) -> None:
        """Let go of all that is kept, as if no request had come before."""
        budget = cache_budget(self.network.devices, logits_nbytes(self.info.noise.vocab_size))
        self.cache = KVCache(len(self.network.layers), self.network.token_nbytes, budget, self._reuse)

    def shrink_caches(self) -> None:
        """Let go of all that is kept and not in use, and keep half as much from now on."""
        self.cache.shrink()
