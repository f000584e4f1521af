"""What a step computes of each canvas, and what it remembers of the steps before.

A canvas looks at itself in both directions, so keys and values anywhere on it depend on every token of the gap, and
none of them can be kept for good, as those of the context can. But they change little from one step to the next. A
full pass leaves them here; the next few steps compute what is in question, what was settled since, and the first tokens
behind it; then everything is computed afresh.

What is computed of several canvases lies side by side, without padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from engine.models.base import Context, Rows
from engine.models.gemma.network import Attend, Network, attention
from engine.models.kv_cache import EncodedContext

REFRESHED = 8
"""Steps on one full pass, itself included."""
NEAR = 4
"""Tokens behind the last one in question that are computed with it: they depend on it most."""
SMALL = 0.75
"""Share of a canvas up to which computing that part alone is a gain."""
REMEMBERED = 8
"""Canvases of one context."""


@dataclass(slots=True, kw_only=True, eq=False)
class Pass:
    """Keys and values of a canvas at a full pass, and what was computed again since: [K, L, D] for each layer."""

    ids: Sequence[int]
    open: Sequence[bool]
    """What was in question."""
    keys: list[Tensor] = field(default_factory=list[Tensor])
    values: list[Tensor] = field(default_factory=list[Tensor])
    uses: int = 1

    def update(self, layer: int, places: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Take over what was computed at `places`, [K, P, D]; returns what the whole canvas has, [1, K, L, D]."""
        if layer == len(self.keys):
            self.keys.append(key)
            self.values.append(value)
        else:
            self.keys[layer].index_copy_(1, places, key)
            self.values[layer].index_copy_(1, places, value)
        return self.keys[layer][None], self.values[layer][None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is computed of one canvas."""

    context: EncodedContext
    row: int
    ids: Sequence[int]
    """Of the whole canvas."""
    open: Sequence[bool]
    places: Sequence[int]
    """Where on the canvas."""
    held: Pass
    """Has the rest; empty where everything is computed."""
    remembered: bool


class CanvasMemory:
    """The last passes over the canvases of each living context."""

    def __init__(self) -> None:
        self._passes: WeakKeyDictionary[EncodedContext, list[Pass]] = WeakKeyDictionary()

    @property
    def contexts(self) -> int:
        """For which something is remembered."""
        return len(self._passes)

    def parts(self, rows: Rows, remembered: bool = True) -> list[Part]:
        """What a step over `rows` has to compute; `remembered`: with what is known of the rest."""
        canvases, opens = rows.canvas.tolist(), rows.open.tolist()
        taken: set[int] = set()
        parts: list[Part] = []
        for row, (context, length) in enumerate(zip(rows.contexts, rows.lengths, strict=True)):
            ids, open_ = canvases[row][:length], opens[row][:length]
            # A first step has no signal at all, and what it computes is of no use to those that have one.
            part = self._part(own(context), row, ids, open_, taken, remembered and rows.conditioned[row])
            taken.add(id(part.held))
            parts.append(part)
        return parts

    def keep(self, parts: Sequence[Part]) -> None:
        """Remember a step that was done: one that failed may have left some layers without keys."""
        for part in parts:
            if not part.remembered:
                continue
            if len(part.places) == len(part.ids):
                kept = [held for held in self._passes.get(part.context, []) if held.uses < REFRESHED]
                self._passes[part.context] = [*kept, part.held][-REMEMBERED:]
            else:
                part.held.ids, part.held.open, part.held.uses = part.ids, part.open, part.held.uses + 1

    def _part(
        self, context: EncodedContext, row: int, ids: list[int], open_: list[bool], taken: set[int], remembered: bool
    ) -> Part:
        held, places = Pass(ids=ids, open=open_), range(len(ids))
        # In order: canvases that say the same so far are told apart by their signals, which lie in that order, too.
        for known in self._passes.get(context, []) if remembered else []:
            if id(known) not in taken and (left := _left(known, ids, open_)) is not None:
                held, places = known, left
                break
        return Part(context=context, row=row, ids=ids, open=open_, places=places, held=held, remembered=remembered)


def _left(held: Pass, ids: Sequence[int], open_: Sequence[bool]) -> list[int] | None:
    """What is left to compute of a canvas with the help of `held`; None where that is no help.

    What is in question now was so then, and what was settled then says the same now.
    """
    if held.uses >= REFRESHED or len(ids) != len(held.ids):
        return None
    if any(now and not before for now, before in zip(open_, held.open, strict=True)):
        return None
    if any(a != b and not before for a, b, before in zip(ids, held.ids, held.open, strict=True)):
        return None
    last = max((at for at, each in enumerate(open_) if each), default=-1)
    places = [at for at, before in enumerate(held.open) if before or last < at <= last + NEAR]
    return places if len(places) <= SMALL * len(ids) else None


def attend_to(network: Network, parts: Sequence[Part]) -> Attend:
    """Each canvas sees its whole context (its window, in sliding layers) and all of itself."""
    places = [torch.tensor(part.places, device=network.device) for part in parts]
    sizes = [len(part.places) for part in parts]

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        attended: list[Tensor] = []
        split = zip(parts, places, *(each.split(sizes, dim=2) for each in (query, key, value)), strict=True)
        for part, at, own_query, own_key, own_value in split:
            length = part.context.length
            held = part.held.update(index, at.to(key.device), own_key[0], own_value[0])
            keys, values = part.context.store.followed(index, length, *held)
            start = length - seen(network, index, part.context)
            attended.append(attention(own_query, keys[:, :, start:], values[:, :, start:], None))
        return torch.cat(attended, dim=2)

    return attend


def seen(network: Network, index: int, context: EncodedContext) -> int:
    """Tokens of its context that a canvas sees in layer `index`."""
    window: int = network.config.sliding_window
    return min(window - 1, context.length) if network.sliding(index) else context.length


def own(context: Context) -> EncodedContext:
    """A context that this family encoded."""
    assert isinstance(context, EncodedContext)
    return context
