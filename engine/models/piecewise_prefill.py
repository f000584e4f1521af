"""Encodes contexts piece by piece, for models with a causal encoder."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from engine.models.base import PIECE, Capabilities, Context
from engine.models.kv_cache import KVCache


class PiecewisePrefill(Capabilities):
    """Implements `Prefill` with the model's own `encode`."""

    cache: KVCache
    later: Sequence[int] = ()
    token_ms: float = 0.0
    limit: int = 0
    clock = staticmethod(time.perf_counter)
    owner: object = None
    """Identifies whose contexts it uses, where models with other weights share its cache."""

    @property
    def prefill(self) -> Self:
        return self

    @abstractmethod
    def encode(self, ids: Sequence[int]) -> Context:
        """Encode what the cache does not hold of the context [T]."""

    def read_ahead(self, ids: Sequence[int]) -> None:
        """Encode all of a context, before a request needs it."""
        self.encode(ids)

    def unread(self, ids: Sequence[int]) -> int:
        return len(ids) - self.cache.known(ids, self.owner)

    def read_piece(self) -> None:
        left, began = self.unread(self.later), self.clock()
        self.read_ahead(self.later[: len(self.later) - left + PIECE])
        if left <= PIECE:
            self.later = ()
        else:
            self.token_ms = (self.clock() - began) * 1000 / PIECE
