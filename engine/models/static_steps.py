"""Steps without launches on CUDA: one graph for each of a few widths, over buffers that stay where they are.

A step is made of thousands of small kernels, and to start them one by one takes longer than most of them run. A graph
starts all at once, but for shapes and places that never change. So tokens are padded to a width, keys and values are
copied to where the graph looks for them (a context's once, a canvas's before and after each step), and a mask says
what of it counts. What fits none of the widths goes the usual way, which computes the same.
"""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.common.errors import is_broken_device, is_out_of_memory
from engine.models.base import Context
from engine.models.kv_cache import Part, Pass, uploaded
from engine.models.network import Attend, Network

Hidden = Callable[[Tensor, Tensor, Attend, Tensor | None, Tensor | None], Tensor]
"""As `CanvasModel.hidden`."""
Run = Callable[[], Tensor]
Capture = Callable[[Run], Run]
"""Turns a function over tensors at fixed places into another one that does the same."""
_log = logging.getLogger(__name__)
_WIDTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Widths that are computed and seen; a step takes the narrowest that it fits."""
_MOST_COMPUTED = 512
"""Most tokens of a step. Wider ones take so long that their launches hardly count."""
_MOST_CAUSAL_SLOTS = 512
_FROM_USE = 2
"""The use of a width at which its graph is made, which takes as long as a few steps."""
_MOST_GRAPHS = 24


class Widths(NamedTuple):
    """The sizes that a graph is made for."""

    computed: int
    """Tokens that are computed."""
    slots: int
    """Places for keys and values of canvases."""
    context: int
    """Places for those of the context before them."""


class StaticSteps:
    """Runs passes over canvases that stand after one context."""

    def __init__(self, network: Network, slots: int, context: int, capture: Capture) -> None:
        """`slots`: most tokens of all canvases of a step; `context`: most tokens before them."""
        self._network, self._capture = network, capture
        self._slots, self._context = _width(slots), _width(context)
        self._uses = Counter[Widths]()
        self._runs: dict[Widths, Run] = {}
        self._buffers: _Buffers | None = None
        self._fails = False
        self.count = 0
        """Steps that were run."""

    @property
    def widths(self) -> Sequence[Widths]:
        """The widths that have graphs."""
        return tuple(self._runs)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values here."""
        places = (
            (self._slots + self._network.seen(index, self._context)) for index in range(len(self._network.layers))
        )
        shapes = zip(self._network.kv_shapes, places, strict=True)
        return sum(2 * heads * size * room for (heads, size), room in shapes) * self._network.embeddings.weight.itemsize

    def run(
        self, hidden: Hidden, parts: Sequence[Part], ids: Tensor, positions: Tensor, signal: Tensor | None
    ) -> Tensor | None:
        """Hidden states [1, T, E] of the computed tokens [1, T] of the parts; their keys and values are kept as in a
        usual step. They hold until the next call. None: the step has to go the usual way."""
        widths = self._widths_of(parts)
        if widths is None or self._fails:
            return None
        self._uses[widths] += 1
        new = widths not in self._runs
        if new and (self._uses[widths] < _FROM_USE or len(self._runs) >= _MOST_GRAPHS):
            return None
        buffers = self._buffers = self._buffers or _Buffers(self._network, self._slots, self._context)
        buffers.fill(widths, parts, ids, positions, signal)
        if new and not self._captured(buffers, widths, hidden):
            return None
        computed = self._runs[widths]()
        buffers.keep()
        self.count += 1
        return computed[:, : ids.shape[1]]

    def _captured(self, buffers: _Buffers, widths: Widths, hidden: Hidden) -> bool:
        try:
            self._runs[widths] = self._capture(lambda: buffers.compute(widths, hidden))
        except RuntimeError as error:
            # An operation that no graph may hold is reported as broken devices are.
            if is_out_of_memory(error) or (is_broken_device(error) and "captur" not in str(error)):
                raise
            # Such as torch's product of experts in full, which on some devices asks for their rows. Slower steps are
            # better than none.
            _log.warning("Steps are launched one by one, as they can't be captured: %s", error)
            self._fails = True
        return not self._fails

    def _widths_of(self, parts: Sequence[Part]) -> Widths | None:
        first, computed = parts[0], sum(len(part.places) for part in parts)
        slots = sum(len(part.ids) for part in parts)
        one_context = all(part.start == 0 or part.context is first.context for part in parts)
        if not one_context or computed > _MOST_COMPUTED or slots > self._slots or first.start > self._context:
            return None
        return Widths(computed=_width(computed), slots=_width(slots), context=_width(first.start))


class _Buffers:
    """The tensors that graphs compute with. Keys and values of canvases end where those of the context begin, so that
    both are contiguous for all widths."""

    def __init__(self, network: Network, slots: int, context: int) -> None:
        self._network, self._slots = network, slots
        table, device = network.embeddings.weight, network.device
        most = min(_MOST_COMPUTED, slots)
        self._signal = table.new_zeros(1, most, table.shape[1])
        self._ids, self._positions = torch.zeros(2, 1, most, dtype=torch.int64, device=device)
        # Of each token, where its keys go and whose it is; of each slot, whose it is; and how long the context is.
        self._numbers = torch.zeros(2 * most + slots + 1, dtype=torch.int64, device=device)
        # Zeros, as what a mask hides still has to be a number.
        self._keys, self._values = (
            [
                table.new_zeros(1, heads, slots + network.seen(index, context), head)
                for index, (heads, head) in enumerate(network.kv_shapes)
            ]
            for _ in range(2)
        )
        self._context: Callable[[], Context | None] = lambda: None
        """The context whose keys and values are here."""

    def fill(
        self, widths: Widths, parts: Sequence[Part], ids: Tensor, positions: Tensor, signal: Tensor | None
    ) -> None:
        """Take the input of a step. It is padded with its first token: the same is computed again, written to the same
        places, and routed to the same experts."""
        most, tokens = widths.computed, ids.shape[1]
        for buffer, given in ((self._ids, ids), (self._positions, positions), (self._signal, signal)):
            if given is None:
                buffer[:, :most] = 0
                continue
            buffer[:, :tokens] = given
            buffer[:, tokens:most] = given[:, :1]
        begins = [sum(len(part.ids) for part in parts[:number]) for number in range(len(parts))]
        at = [begin + place for begin, part in zip(begins, parts, strict=True) for place in part.places]
        whose = [number for number, part in enumerate(parts) for _ in part.places]
        of_slots = [number for number, part in enumerate(parts) for _ in part.ids]
        nobody = [-1] * (widths.slots - len(of_slots))
        numbers = [*at, *at[:1] * (most - tokens), *whose, *whose[:1] * (most - tokens), *of_slots, *nobody]
        self._numbers[: len(numbers) + 1] = uploaded([[*numbers, parts[0].start]], self._numbers.device)[0]
        self._take_context(parts[0])
        first = self._slots - widths.slots
        self._held: list[tuple[Pass, bool, list[Tensor], list[Tensor]]] = []
        known: list[tuple[Tensor, Tensor]] = []
        for part, begin in zip(parts, begins, strict=True):
            if part.held is None:
                continue
            own = slice(first + begin, first + begin + len(part.ids))
            keys, values = ([here[:, :, own] for here in kind] for kind in (self._keys, self._values))
            self._held.append((part.held, part.changes_held, keys, values))
            if part.held.keys:
                known += [*zip(keys, part.held.keys, strict=True), *zip(values, part.held.values, strict=True)]
        _copy(known)

    def compute(self, widths: Widths, hidden: Hidden) -> Tensor:
        """Hidden states [1, T, E], computed from these tensors alone, always in the same shapes."""
        computed, slots, _ = widths
        at, whose, of_slots, length = self._numbers[: 2 * computed + slots + 1].split([computed, computed, slots, 1])
        first = self._slots - slots
        own = whose[:, None] == of_slots
        masks: dict[int, Tensor] = {}

        def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            seen = self._network.seen(index, widths.context)
            if seen not in masks:
                before = torch.arange(seen, device=own.device) < length
                masks[seen] = torch.cat((own, before.expand(computed, seen)), dim=1)[None, None]
            last = self._slots + seen
            keys, values = self._keys[index][:, :, first:last], self._values[index][:, :, first:last]
            keys.index_copy_(2, at, key)
            values.index_copy_(2, at, value)
            return self._network.attention(query, keys, values, masks[seen])

        signal = self._signal[:, :computed]
        return hidden(self._ids[:, :computed], self._positions[:, :computed], attend, signal, None)

    def keep(self) -> None:
        """Copy keys and values of canvases to where they are kept."""
        known: list[tuple[Tensor, Tensor]] = []
        for held, changes, keys, values in self._held:
            if not held.keys:
                held.keys, held.values = [here.clone() for here in keys], [here.clone() for here in values]
            elif changes:
                known += [*zip(held.keys, keys, strict=True), *zip(held.values, values, strict=True)]
        _copy(known)

    def _take_context(self, part: Part) -> None:
        if part.store is None or self._context() is part.context:
            return
        pairs: list[tuple[Tensor, Tensor]] = []
        for index in range(len(self._keys)):
            seen = self._network.seen(index, part.start)
            stored = part.store.read(index, part.start)
            for here, there in zip((self._keys[index], self._values[index]), stored, strict=True):
                pairs.append((here[:, :, self._slots : self._slots + seen], there[:, :, part.start - seen :]))
        _copy(pairs)
        self._context = weakref.ref(part.context)


def static_steps(network: Network, reads: int | None, context: int) -> StaticSteps | None:
    """The static steps of a network on one CUDA device; None on any other. `reads`: as of the model; `context`: its
    limit."""
    if network.device.type != "cuda" or {*network.devices} != {network.device}:
        return None
    slots, context = (_MOST_CAUSAL_SLOTS, context) if reads is None else (reads, 0)
    return StaticSteps(network, min(slots, _WIDTHS[-1]), min(context, _WIDTHS[-1]), graphs(network.device))


def graphs(device: torch.device) -> Capture:
    """Functions as CUDA graphs that share memory: what one returns holds until the next runs."""
    pool = torch.cuda.graph_pool_handle()

    def capture(run: Run) -> Run:
        with torch.cuda.device(device):
            side = _side_stream(device)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                # What is made at a first run, such as kernels and workspaces, can't be made in a graph.
                for _ in range(2):
                    run()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                out = run()

        def replay() -> Tensor:
            graph.replay()
            return out

        return replay

    return capture


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One stream for good: torch keeps a workspace for each stream with products, 32 MB on some devices."""
    return torch.cuda.Stream(device)


def _copy(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Copy each second tensor into the first one of its pair, in a few launches for all."""
    if pairs:
        together: Any = torch._foreach_copy_  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
        together([into for into, _ in pairs], [source for _, source in pairs])


def _width(tokens: int) -> int:
    return next(width for width in _WIDTHS if tokens <= width)
