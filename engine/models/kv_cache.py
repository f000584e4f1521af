"""Keys and values that are kept, of contexts and of canvases, within one budget.

Those of a causal context stay true: they are reused by longest common prefix. transformers' sliding-window layers
forget what left the window, so they can't be cropped when typing changed the tail of a context. Here every layer keeps
all its keys and values, and a layer with a window looks at the last of them.

What looks in both directions depends on every token of the gap, so none of it can be kept for good: a canvas after a
causal context, and where nothing is causal the surroundings of the gap, too. But it changes little from one step to the
next. A full pass leaves it here; the next few steps compute what is in question, what was settled since, and the first
tokens after it; then everything is computed afresh. Only while the gap keeps its width: what stands around it knows
the width, and with the keys and values of another one a model that found every width by first sight found one in eight.
What is kept is a gain, never needed: what does not fit the budget is computed again.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import psutil
import torch
from torch import Tensor

from engine.common.sequences import common_head
from engine.models.base import Context
from engine.models.checkpoints.working import PASS
from engine.models.network import Attend, Network, bias

_GROWTH = 256
"""Tokens by which a store grows."""
PASSES = 8
"""Passes that are kept for one context."""
_SHARE = 0.9
"""Share of a device's free memory: what is freed can't all be used again."""
_SPARE_NBYTES = 512 << 20
"""Bytes of main memory that are left to other programs."""
_MOST_CPU_NBYTES = 512 << 20
_EMPTY = 8
"""Most stores of contexts that no pass has read yet; cancelled requests leave such."""


class KeyValues:
    """Every layer's keys and values of one growing list of tokens."""

    def __init__(self, layers: int, owner: object = None) -> None:
        """`owner`: whose weights they are made with, told apart by identity."""
        self.owner = owner
        self.ids: list[int] = []
        self._keys: list[Tensor | None] = [None] * layers
        self._values: list[Tensor | None] = [None] * layers
        self._readers: weakref.WeakSet[EncodedContext] = weakref.WeakSet()
        self.nbytes = 0
        """Bytes, unused room included. It is counted as the store grows: a cache of hundreds of contexts asks for it at
        each pass."""

    @property
    def in_main_memory(self) -> bool:
        """Whether any layer's keys and values are in main memory."""
        return any(tensor is not None and tensor.device.type == "cpu" for tensor in self._keys)

    def update(self, start: int, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write [1, K, T, D] at position `start`; returns keys and values [1, K, start + T, D], views."""
        end = start + key.shape[2]
        for stored, new in ((self._keys, key), (self._values, value)):
            room = stored[layer]
            if room is None or room.shape[2] < end:
                grown = new.new_empty(1, new.shape[1], -(-end // _GROWTH) * _GROWTH, new.shape[3])
                if room is not None:
                    grown[:, :, :start] = room[:, :, :start]
                    self.nbytes -= room.nbytes
                stored[layer] = room = grown
                self.nbytes += grown.nbytes
            room[:, :, start:end] = new
        return self.read(layer, end)

    def read(self, layer: int, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values [1, K, length, D] of the first `length` tokens, views."""
        key, value = self._keys[layer], self._values[layer]
        assert key is not None
        assert value is not None
        return key[:, :, :length], value[:, :, :length]

    def followed(self, length: int, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [B, K, length + T, D] of the first `length` tokens followed by [B, K, T, D]; they hold until
        the next call for the layer."""
        if length == len(self.ids) and len(key) == 1:
            # Nothing is kept there: what the context has need not be copied.
            return self.update(length, layer, key, value)
        keys, values = (each.expand(len(key), -1, -1, -1) for each in self.read(layer, length))
        return torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2)

    def move(self, start: int, places: Sequence[int]) -> None:
        """Move the tokens at `places` (ascending, none before `start`) to `start` and after it."""
        if list(places) == list(range(start, start + len(places))):
            return
        for room in (*self._keys, *self._values):
            assert room is not None
            room[:, :, start : start + len(places)] = room[:, :, list(places)]

    def context(self, length: int) -> EncodedContext:
        """The first `length` tokens as a context; they stay untouched as long as it is alive."""
        context = EncodedContext(store=self, length=length)
        self._readers.add(context)
        return context

    def copy(self, length: int) -> KeyValues:
        """A separate store with the first `length` tokens."""
        twin = KeyValues(len(self._keys), self.owner)
        twin.ids = self.ids[:length]
        twin._keys = [key[:, :, :length].clone() if key is not None else None for key in self._keys]
        twin._values = [value[:, :, :length].clone() if value is not None else None for value in self._values]
        twin.nbytes = sum(each.nbytes for each in (*twin._keys, *twin._values) if each is not None)
        return twin

    def in_use(self, length: int) -> bool:
        """Whether a living context reads beyond the first `length` tokens."""
        return any(context.length > length for context in self._readers)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class EncodedContext:
    """The first `length` tokens of a store."""

    store: KeyValues
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """How far steps of a family rely on earlier ones."""

    steps: int
    """Steps on one full pass, itself included."""
    near: int
    """Tokens after the last open position that are computed with it, as they depend on it most."""
    share: float
    """Largest share of a sequence for which computing a part alone is a gain."""
    shared: bool
    """Whether canvases share a pass; then positions that settled since the pass are computed in each step."""


@dataclass(slots=True, kw_only=True, eq=False)
class Pass:
    """Keys and values of a sequence from a full pass, and from later steps: [1, K, L, D] for each layer."""

    ids: Sequence[int]
    open: Collection[int]
    """Places that were open."""
    places: Collection[int]
    """Places that a step on this pass computes."""
    keys: list[Tensor] = field(default_factory=list[Tensor])
    values: list[Tensor] = field(default_factory=list[Tensor])
    uses: int = 1
    used_at: int = 0

    def says(self, ids: Sequence[int], but: Collection[int]) -> bool:
        """Whether it is a pass over `ids`, whatever is at the places `but`."""
        if len(ids) != len(self.ids):
            return False
        same = list(ids)
        for at in but:
            same[at] = self.ids[at]
        return same == list(self.ids)


@dataclass(slots=True, kw_only=True, eq=False)
class Part:
    """One sequence of a step: a canvas after its context, or context and canvas where attention is not causal."""

    context: Context
    ids: Sequence[int]
    open: Sequence[int]
    """Open places."""
    wanted: Sequence[int]
    """Places whose hidden states are wanted."""
    start: int = 0
    """Tokens of `store` before the sequence."""
    store: KeyValues | None = None
    signal: Tensor | None = None
    """The previous step's predictions for open places, as embeddings [F, E]."""
    reusable: bool = True
    """Whether its results may be used by other steps, and theirs by it."""
    places: Sequence[int] = field(init=False)
    """Places that are computed."""
    held: Pass | None = None
    """The pass that has the rest, or that takes all results; None: everything is computed and nothing kept."""
    changes_held: bool = True

    def __post_init__(self) -> None:
        self.places = range(len(self.ids))

    def region(self, near: int) -> set[int]:
        """The places that can't be taken from an earlier step."""
        last = max(self.open, default=-1)
        return {*self.open, *self.wanted, *range(last + 1, min(last + 1 + near, len(self.ids)))}

    def keys_and_values(self, layer: int, places: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the whole sequence, [1, K, L, D], given those of `places`, [1, K, P, D]."""
        if self.held is None:
            return key, value
        keys, values = self.held.keys, self.held.values
        if layer == len(keys):
            # Copied, so that the rest of its batch can go.
            keys.append(key.clone())
            values.append(value.clone())
        elif not self.changes_held:
            return keys[layer].index_copy(2, places, key), values[layer].index_copy(2, places, value)
        else:
            keys[layer].index_copy_(2, places, key)
            values[layer].index_copy_(2, places, value)
        return keys[layer], values[layer]


class KVCache:
    """The stores of recent contexts, and recent passes over the canvases of each living context. Models that differ in
    some weights share one."""

    def __init__(self, layers: int, token_nbytes: int, budget_nbytes: int, reuse: Reuse) -> None:
        """`token_nbytes`: bytes of one token's keys and values in all layers."""
        self._layers = layers
        self._token_nbytes = token_nbytes
        self.budget_nbytes = budget_nbytes
        self.reuse = reuse
        self._stores: list[KeyValues] = []  # least recently used first
        self._passes: WeakKeyDictionary[Context, list[Pass]] = WeakKeyDictionary()
        self._steps = 0
        self.tokens_requested = 0
        """Tokens of context that were requested since the start."""
        self.tokens_reused = 0
        """Tokens of these that were in the cache."""

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        return sum(store.nbytes for store in self._stores) + self.passes_nbytes

    @property
    def passes_nbytes(self) -> int:
        """Bytes of what is kept of canvases."""
        return sum(len(held.ids) for passes in self._passes.values() for held in passes) * self._token_nbytes

    def open(self, ids: Sequence[int], owner: object = None) -> tuple[KeyValues, int]:
        """A store for `ids` and how many of them it holds already; the caller, who has the weights of `owner`, encodes
        and appends the rest."""
        ids = list(ids)
        best, known = self._nearest(ids, owner)
        self.tokens_requested += len(ids)
        self.tokens_reused += known
        if best is None or known == 0:
            store = KeyValues(self._layers, owner)
        elif known == len(best.ids) or known == len(ids):
            store = best
        elif best.in_use(known) or known < len(best.ids) // 2:
            # Somebody reads the tail, or it is worth more than what is kept: leave it as it is.
            store = best.copy(known)
        else:
            store = best
            del store.ids[known:]
        if store in self._stores:
            self._stores.remove(store)
        self._stores.append(store)
        return store, known

    def known(self, ids: Sequence[int], owner: object = None) -> int:
        """How many of `ids` some store of an owner holds."""
        return self._nearest(list(ids), owner)[1]

    def _nearest(self, ids: list[int], owner: object) -> tuple[KeyValues | None, int]:
        """The store of an owner that holds most of `ids` from the first on, and how many."""
        own = (store for store in self._stores if store.owner is owner)
        best = max(own, key=lambda store: common_head(store.ids, ids), default=None)
        return best, common_head(best.ids, ids) if best else 0

    def trim(self) -> None:
        """Drop the least recently used stores until the budget is kept and main memory is not short; the newest always
        stays. Of those that hold nothing, as no pass came, a few are kept."""
        empty = [store for store in self._stores[:-1] if not store.ids]
        for store in empty[:-_EMPTY]:
            self._stores.remove(store)
        while len(self._stores) > 1 and (self.nbytes > self.budget_nbytes or self._is_short()):
            self._stores.pop(0)

    def _is_short(self) -> bool:
        store = self._stores[-1]
        return store.in_main_memory and psutil.virtual_memory().available < _SPARE_NBYTES

    def shrink(self) -> None:
        """Drop everything, and keep half as much from now on."""
        self._stores.clear()
        self._passes.clear()
        self.budget_nbytes //= 2

    def passes(self, context: Context) -> Sequence[Pass]:
        """The passes of a context, oldest first."""
        return self._passes.get(context, ())

    def plan(self, parts: Sequence[Part]) -> None:
        """Decide what a step computes of each part, and where full passes are kept. Passes used in this step stay:
        parts without room must not drive out the others."""
        self._steps += 1
        used: set[Pass] = set()
        for part in parts:
            # In order: canvases that say the same so far are told apart by their signals, which lie in that order, too.
            for held in self.passes(part.context) if part.reusable else ():
                usable = held.uses < self.reuse.steps and (self.reuse.shared or held not in used)
                # Nothing may be in question again that was settled.
                fits = usable and {*part.open} <= {*held.open} and held.says(part.ids, held.open)
                if fits and self._gains(part, held.places):
                    part.held, part.places = held, sorted(held.places)
                    used.add(held)
                    break
        for part in parts:
            region = part.region(self.reuse.near)
            wanted = part.reusable and part.held is None and self._gains(part, region)
            if wanted and self._make_room(len(part.ids), used):
                part.held = Pass(ids=part.ids, open=part.open, places=region)
                used.add(part.held)

    def recall(self, parts: Sequence[Part]) -> None:
        """Decide what is computed of texts that no step is over; used-up passes may serve."""
        for part in parts:
            part.changes_held = False
            for held in reversed(self.passes(part.context)):
                region = {*held.places, *part.region(self.reuse.near)}
                if held.says(part.ids, region) and self._gains(part, region):
                    part.held, part.places = held, sorted(region)
                    break

    def keep(self, parts: Sequence[Part]) -> None:
        """Keep the results of a finished step: a failed one may have left some layers without keys."""
        for held, part in {part.held: part for part in parts}.items():
            if held is None:
                continue
            held.used_at = self._steps
            passes = self._passes.setdefault(part.context, [])
            if held not in passes:
                passes.append(held)
                del passes[:-PASSES]
                continue
            held.uses += 1
            if not self.reuse.shared:
                held.ids, held.open, held.places = part.ids, part.open, part.region(self.reuse.near)

    def _gains(self, part: Part, places: Collection[int]) -> bool:
        return len(places) <= self.reuse.share * len(part.ids)

    def _make_room(self, tokens: int, used: Collection[Pass]) -> bool:
        """Make room for a pass by dropping the least recently used ones; False where there is none."""
        room = self.budget_nbytes - sum(store.nbytes for store in self._stores)
        room -= (tokens + sum(len(held.ids) for held in used)) * self._token_nbytes
        if room < 0:
            return False
        others = [held for passes in self._passes.values() for held in passes if held not in used]
        gone: set[Pass] = set()
        excess = sum(len(held.ids) for held in others) * self._token_nbytes - room
        for held in sorted(others, key=lambda held: held.used_at):
            if excess <= 0:
                break
            gone.add(held)
            excess -= len(held.ids) * self._token_nbytes
        for passes in self._passes.values():
            passes[:] = [held for held in passes if held not in gone]
        return True


def attend_to(network: Network, parts: Sequence[Part], places: Sequence[Tensor]) -> Attend:
    """Attention in which each sequence sees all of itself and of its context (its window, in sliding layers). The
    computed places of all sequences lie side by side without padding; the last layer has the wanted ones alone."""
    sizes, wanted = [len(part.places) for part in parts], [len(part.wanted) for part in parts]
    last = len(network.layers) - 1

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        attended: list[Tensor] = []
        queries = query.split(wanted if index == last else sizes, dim=2)
        split = zip(parts, places, queries, *(each.split(sizes, dim=2) for each in (key, value)), strict=True)
        for part, at, own_query, own_key, own_value in split:
            keys, values = part.keys_and_values(index, at.to(key.device), own_key, own_value)
            if part.store is not None:
                keys, values = part.store.followed(part.start, index, keys, values)
                unseen = part.start - network.seen(index, part.start)
                keys, values = keys[:, :, unseen:], values[:, :, unseen:]
            attended.append(network.attention(own_query, keys, values))
        return torch.cat(attended, dim=2)

    return attend


def wanted_of(parts: Sequence[Part]) -> list[int]:
    """The indices of wanted places among all computed ones."""
    wanted, before = list[int](), 0
    for part in parts:
        index = {place: before + at for at, place in enumerate(part.places)}
        wanted += [index[place] for place in part.wanted]
        before += len(index)
    return wanted


def uploaded(lists: Sequence[Sequence[int]], device: torch.device) -> list[Tensor]:
    """Lists of numbers on a device, int64 each, in one copy that does not block."""
    together = torch.tensor([number for each in lists for number in each], dtype=torch.int64)
    if device.type == "cuda":
        together = together.pin_memory()
    return list(together.to(device, non_blocking=True).split([len(each) for each in lists]))


def chunks(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    """The parts in order, in groups that may be computed together."""
    start = size = 0
    for at, part in enumerate(parts):
        if at > start and size + len(part.places) > PASS:
            yield parts[start:at]
            start, size = at, 0
        size += len(part.places)
    if start < len(parts):
        yield parts[start:]


def cache_budget(layers: Sequence[torch.device], reserved_nbytes: int) -> int:
    """Bytes for keys and values of `layers`; `reserved_nbytes` of each device are for other things."""
    rooms = [_room(device, reserved_nbytes) / count for device, count in Counter(layers).items()]
    return int(min(rooms) * len(layers))


def _room(device: torch.device, reserved_nbytes: int) -> float:
    if device.type != "cuda":
        return min(max(psutil.virtual_memory().available - _SPARE_NBYTES, 0) * _SHARE, _MOST_CPU_NBYTES)
    return max(torch.cuda.mem_get_info(device)[0] - reserved_nbytes, 0) * _SHARE


def window_mask(
    start: int, length: int, first: int, window: int | None, device: torch.device, dtype: torch.dtype
) -> Tensor:
    """A causal mask [1, 1, length, start + length - first] for queries from `start` on and keys from `first` on: 0 or
    -inf, added to scores. A position sees itself and those before it, `window` positions in all where there is one."""
    queries = torch.arange(start, start + length, device=device)[:, None]
    keys = torch.arange(first, start + length, device=device)[None, :]
    mask = keys <= queries
    if window is not None:
        mask &= keys > queries - window
    return bias(mask[None, None], dtype)
