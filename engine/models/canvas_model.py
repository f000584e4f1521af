"""A resident text-diffusion model, apart from what its family computes: one ragged pass over the open positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor

from engine.models.base import Capabilities, ModelInfo, Rows
from engine.models.kv_cache import KVCache, Part, Reuse, attend_to, cache_budget, chunks, uploaded, wanted_of
from engine.models.logits import Head, Logits
from engine.models.network import Attend, Network
from engine.models.static_steps import StaticSteps, static_steps
from engine.models.tokenizer import PromptLayout

N = TypeVar("N", bound=Network)


class CanvasModel(Capabilities, ABC, Generic[N]):
    """A resident checkpoint of any text-diffusion family."""

    remembers = True
    """Whether steps reuse what earlier ones computed; otherwise each step computes everything."""
    static: StaticSteps | None
    """CUDA graphs that most steps use."""
    owner: object = None
    """Identifies the contexts of this model, if models with other weights share its cache."""

    def __init__(self, network: N, info: ModelInfo, prompt: PromptLayout, reuse: Reuse) -> None:
        self.vocabulary = prompt.vocabulary
        self.tokenize = prompt.tokenize
        self.prompt = prompt.lay_out
        self._reuse = reuse
        self._take(network, info)
        self.forget()

    def over(self, module: Any, info: ModelInfo) -> Self:
        """The same model with other weights. Both share one cache, and neither uses contexts of the other."""
        twin = copy(self)
        twin.owner = object()
        twin._take(self.network.over(module), info)
        return twin

    def _take(self, network: N, info: ModelInfo) -> None:
        self.network, self.info = network, info
        network.lay_out()
        self.head = Head(network.logits, info.noise.vocab_size, network.conditions_by)
        self.static = static_steps(network, self.reads, info.context_limit)

    @abstractmethod
    def parts(self, rows: Rows) -> list[Part]:
        """One sequence for each row."""

    @abstractmethod
    def hidden(
        self, ids: Tensor, positions: Tensor, attend: Attend, signal: Tensor | None, wanted: Tensor | None
    ) -> Tensor:
        """Hidden states [1, F, E] of the `wanted` F of the computed tokens [1, T], or of all. `signal` [1, T, E]."""

    @property
    @abstractmethod
    def reads(self) -> int | None:
        """Most tokens of context and canvas; None: as many as memory holds."""

    def signal(self, parts: Sequence[Part], ids: Tensor) -> Tensor | None:
        """The previous step's predictions [1, T, E] for the computed tokens [1, T]; None: there are none."""
        return None

    @torch.inference_mode()
    def step(self, rows: Rows) -> Logits:
        """Logits of the open positions, row by row."""
        distinct: dict[object, Part] = {}
        parts: list[Part] = []
        for row, part in enumerate(self.parts(rows)):
            # First steps over the same canvas say the same.
            same = row if rows.conditioned[row] else (id(part.context), tuple(part.ids), tuple(part.open))
            parts.append(distinct.setdefault(same, part))
        computed = list(distinct.values())
        if self.remembers:
            self.cache.plan(computed)
        states = dict(zip(computed, self.states(computed), strict=True))
        if self.remembers:
            self.cache.keep(computed)
        return Logits(hidden=torch.cat([states[part] for part in parts]), head=self.head)

    def states(self, parts: Sequence[Part]) -> Iterator[Tensor]:
        """Hidden states [F, E] of the wanted places, sequence by sequence."""
        device = self.network.device
        for chunk in chunks(parts):
            ids = [part.ids[at] for part in chunk for at in part.places]
            positions = [part.start + at for part in chunk for at in part.places]
            numbers = uploaded([ids, positions, wanted_of(chunk), *(part.places for part in chunk)], device)
            tokens, places, wanted = numbers[0][None], numbers[1][None], numbers[2]
            signal = self.signal(chunk, tokens)
            hidden = self.static.run(self.hidden, chunk, tokens, places, signal) if self.static is not None else None
            if hidden is not None:
                hidden = hidden.index_select(1, wanted)
            else:
                hidden = self.hidden(tokens, places, attend_to(self.network, chunk, numbers[3:]), signal, wanted)
            yield from hidden[0].split([len(part.wanted) for part in chunk])

    def forget(self) -> None:
        """Drop everything cached, as if no request had come before."""
        memory = self.info.memory
        # The plan counts one context, which the cache takes as well.
        reserved = 0 if memory is None else memory.beside - memory.contexts - memory.library
        reserved += self.static.nbytes if self.static is not None else 0
        budget = cache_budget(self.network.devices, reserved)
        self.cache = KVCache(len(self.network.layers), self.network.token_nbytes, budget, self._reuse)

    @property
    def context_tokens(self) -> tuple[int, int]:
        return self.cache.tokens_requested, self.cache.tokens_reused

    def shrink_caches(self) -> None:
        """Drop cached contexts that are not in use, and keep half as much from now on. Steps no longer use graphs."""
        self.static = None
        self.cache.shrink()
