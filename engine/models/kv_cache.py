"""Keys and values of contexts, kept while memory allows and reused by longest common prefix.

transformers' sliding-window layers forget what left the window, so they can't be cropped when typing changed
the tail of a context. Here every layer keeps all its keys and values, and a layer with a window looks at the
last of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_GROWTH = 256
"""Tokens by which a store grows."""


class KeyValues:
    """Every layer's keys and values of one growing list of tokens."""

    def __init__(self, layers: int) -> None:
        self.ids: list[int] = []
        self._keys: list[Tensor | None] = [None] * layers
        self._values: list[Tensor | None] = [None] * layers
        self._readers: weakref.WeakSet[EncodedContext] = weakref.WeakSet()

    @property
    def nbytes(self) -> int:
        """Bytes held, unused room included."""
        return sum(tensor.nbytes for tensor in (*self._keys, *self._values) if tensor is not None)

    def update(self, start: int, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write [1, K, T, D] at position `start`; returns keys and values [1, K, start + T, D], views."""
        end = start + key.shape[2]
        for stored, new in ((self._keys, key), (self._values, value)):
            room = stored[layer]
            if room is None or room.shape[2] < end:
                grown = new.new_empty(1, new.shape[1], -(-end // _GROWTH) * _GROWTH, new.shape[3])
                if room is not None:
                    grown[:, :, :start] = room[:, :, :start]
                stored[layer] = grown
                room = grown
            room[:, :, start:end] = new
        return self.read(layer, end)

    def read(self, layer: int, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values [1, K, length, D] of the first `length` tokens, views."""
        key, value = self._keys[layer], self._values[layer]
        assert key is not None
        assert value is not None
        return key[:, :, :length], value[:, :, :length]

    def followed(self, layer: int, length: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [1, K, length + T, D] of the first `length` tokens with [1, K, T, D] behind them; they hold
        until the next call for the layer."""
        if length == len(self.ids):
            # Nothing is kept there: what the context has need not be copied.
            return self.update(length, layer, key, value)
        keys, values = self.read(layer, length)
        return torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2)

    def context(self, length: int) -> EncodedContext:
        """The first `length` tokens as a context; they stay untouched as long as it is alive."""
        context = EncodedContext(store=self, length=length)
        self._readers.add(context)
        return context

    def crop(self, length: int) -> None:
        """Forget the tokens from `length` on."""
        del self.ids[length:]

    def copy(self, length: int) -> KeyValues:
        """A store of its own with the first `length` tokens."""
        twin = KeyValues(len(self._keys))
        twin.ids = self.ids[:length]
        twin._keys = [key[:, :, :length].clone() if key is not None else None for key in self._keys]
        twin._values = [value[:, :, :length].clone() if value is not None else None for value in self._values]
        return twin

    def in_use(self, length: int) -> bool:
        """Whether a living context reads beyond the first `length` tokens."""
        return any(context.length > length for context in self._readers)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class EncodedContext:
    """The first `length` tokens of a store."""

    store: KeyValues
    length: int


class ContextCache:
    """The stores of the last contexts, least recently used first."""

    def __init__(self, layers: int, budget_nbytes: int) -> None:
        self._layers = layers
        self.budget_nbytes = budget_nbytes
        self._stores: list[KeyValues] = []
        self.tokens_asked = 0
        """Tokens of context asked for since the start."""
        self.tokens_reused = 0
        """Tokens of those that were found here."""

    @property
    def nbytes(self) -> int:
        """Bytes held by all stores."""
        return sum(store.nbytes for store in self._stores)

    def open(self, ids: Sequence[int]) -> tuple[KeyValues, int]:
        """A store for `ids` and how many of them it holds already; the caller encodes and appends the rest."""
        best = max(self._stores, key=lambda store: common_length(store.ids, ids), default=None)
        known = common_length(best.ids, ids) if best else 0
        self.tokens_asked += len(ids)
        self.tokens_reused += known
        if best is None or known == 0:
            store = KeyValues(self._layers)
        elif known == len(best.ids) or known == len(ids):
            store = best
        elif best.in_use(known) or known < len(best.ids) // 2:
            # Somebody reads the tail, or it is worth more than what is kept: leave it as it is.
            store = best.copy(known)
        else:
            store = best
            store.crop(known)
        if store in self._stores:
            self._stores.remove(store)
        self._stores.append(store)
        return store, known

    def shrink(self) -> None:
        """Let go of all stores, and keep half as much from now on."""
        self._stores.clear()
        self.budget_nbytes //= 2

    def trim(self) -> None:
        """Let go of the stores unused for longest until the budget is kept; the newest always stays."""
        while len(self._stores) > 1 and self.nbytes > self.budget_nbytes:
            self._stores.pop(0)


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the longest common prefix."""
    shorter = min(len(left), len(right))
    if list(left[:shorter]) == list(right[:shorter]):
        return shorter
    return next(index for index, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)


def window_mask(start: int, length: int, first: int, window: int | None, device: torch.device) -> Tensor:
    """Causal bool mask [1, 1, length, start + length - first] of queries from `start` on over keys from `first` on.

    A position sees itself and what lies before it, `window` positions in all where there is one.
    """
    queries = torch.arange(start, start + length, device=device)[:, None]
    keys = torch.arange(first, start + length, device=device)[None, :]
    mask = keys <= queries
    if window is not None:
        mask &= keys > queries - window
    return mask[None, None]
