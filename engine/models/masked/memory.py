"""What masked models remember of a gap's surroundings between steps.

All positions look at all others here, so the keys and values of prefix and suffix depend on what stands in the gap,
and none of them can be kept for good, as a causal context can. But they change little from one step to the next. A full
pass leaves them here, the next few steps use them and compute the gap alone, and then everything is computed afresh.

Only while the gap keeps its width: what stands around it knows the width, and with the keys and values of another one a
model that found every width by first sight found one in eight.

What is remembered is a gain, never needed: all gaps together have a budget, and what does not fit is computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

import psutil
import torch
from torch import Tensor

REFRESHED = 4
"""Steps on one full pass, itself included."""
NEAR = 8
"""Suffix tokens behind the gap that are computed with it: they depend on it most."""
SMALL = 0.5
"""Share of a sequence up to which computing the rest of it alone is a gain."""
REMEMBERED = 8
"""Passes a gap keeps, one for each candidate."""
SHARE = 0.5
"""Of the free memory of each device, for what is remembered."""
MOST_NBYTES = 4 << 30
"""What is remembered at the most, however much is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One sequence to run: [context | canvas]."""

    ids: Sequence[int]
    context: int
    """Tokens before the gap."""
    tail: int
    """Tokens behind it that are fixed."""
    asked: Sequence[int]
    """Positions whose logits are wanted."""
    known: Sequence[int]
    """What stands in the gap for good, masks left out."""


@dataclass(slots=True, kw_only=True, eq=False)
class Pass:
    """Keys and values of a full pass, [K, T, D] for each layer, keys rotated."""

    line: Line
    keys: list[Tensor] = field(default_factory=list[Tensor])
    values: list[Tensor] = field(default_factory=list[Tensor])
    uses: int = 1

    @property
    def size(self) -> int:
        """Tokens."""
        return len(self.line.ids)

    def take(self, key: Tensor, value: Tensor) -> None:
        """Add a layer of the line [K, T, D], padded at its end. Copied, so that the rest of its batch can go."""
        self.keys.append(key[:, : self.size].clone())
        self.values.append(value[:, : self.size].clone())


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class MaskedContext:
    """What stands before a gap, and what is remembered of the steps of its gap."""

    ids: tuple[int, ...]
    passes: list[Pass] = field(default_factory=list[Pass])

    @property
    def length(self) -> int:
        """Tokens."""
        return len(self.ids)

    def recall(self, line: Line, *, stale: bool = False) -> Window | None:
        """What is left to compute of `line` with the help of the newest pass that fits it; None: all of it.

        `stale`: a pass may have been used for as many steps as it likes and know other tokens in the gap.
        """
        for held in reversed(self.passes):
            if not stale and (held.uses >= REFRESHED or not _is_part(held.line.known, line.known)):
                continue
            window = _window(line, held)
            if window is not None:
                return window
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of a line that is computed: from `start` up to `end`. The rest is remembered."""

    line: Line
    start: int
    end: int
    held: Pass | None
    kept: Pass | None = None
    """Takes the keys and values, where all of the line is computed."""

    @property
    def before(self) -> int:
        """Remembered tokens before it."""
        return self.start

    @property
    def behind(self) -> int:
        """Remembered tokens behind it."""
        return len(self.line.ids) - self.end


class Memory:
    """What is remembered for all gaps that are being filled, within a budget."""

    def __init__(self, tokens: int) -> None:
        """`tokens`: whose keys and values there is room for."""
        self.tokens = tokens
        self._contexts: WeakSet[MaskedContext] = WeakSet()

    @property
    def held(self) -> int:
        """Tokens that are remembered."""
        return sum(each.size for context in self._contexts for each in context.passes)

    def shrink(self) -> None:
        """Forget everything, and keep half as much from now on."""
        for context in self._contexts:
            context.passes = []
        self.tokens //= 2

    def planned(
        self, lines: Sequence[Line], contexts: Sequence[MaskedContext], used: Collection[Pass]
    ) -> list[Pass | None]:
        """An empty pass for each of the lines that will be remembered, once it is computed.

        What is `used` in this step stays: rows that have no room must not drive out those that have. Then the newest
        comes first, and older passes make room for it, those of other gaps before a gap's own.
        """
        self._contexts.update(contexts)
        new = [Pass(line=line) if worth_keeping(line) else None for line in lines]
        others = [context for context in self._contexts if context not in contexts]
        known = [(context, each) for context in (*others, *dict.fromkeys(contexts)) for each in context.passes]
        known += [(context, each) for context, each in zip(contexts, new, strict=True) if each is not None]
        known.sort(key=lambda pair: pair[1] in used)
        stays: set[Pass] = set()
        left, counts = self.tokens, Counter[MaskedContext]()
        for context, each in reversed(known):
            if each.size <= left and counts[context] < REMEMBERED:
                stays.add(each)
                left -= each.size
                counts[context] += 1
        for context in self._contexts:
            context.passes = [each for each in context.passes if each in stays]
        return [each if each in stays else None for each in new]


def room_on(layers: Sequence[torch.device], layer_nbytes: int, kept_nbytes: int) -> int:
    """Tokens of which a `Memory` may hold the keys and values, `layer_nbytes` each in a layer; `layers` lie there.

    `kept_nbytes` of each device are for other things.
    """
    free = {
        device: max(_free_nbytes(device) - kept_nbytes, 0) * SHARE // (count * layer_nbytes)
        for device, count in Counter(layers).items()
    }
    return int(min(*free.values(), MOST_NBYTES // (len(layers) * layer_nbytes)))


def whole(line: Line, kept: Pass | None = None) -> Window:
    """Nothing is remembered."""
    return Window(line=line, start=0, end=len(line.ids), held=None, kept=kept)


def worth_keeping(line: Line) -> bool:
    """Whether a step that computes the gap alone would be a gain."""
    return _fits(line, line.tail)


def _window(line: Line, held: Pass) -> Window | None:
    tail = min(line.tail, held.line.tail)
    same = tail == 0 or list(line.ids[-tail:]) == list(held.line.ids[-tail:])
    if len(line.ids) != len(held.line.ids) or not same or not _fits(line, tail):
        return None
    return Window(line=line, start=_start(line), end=_end(line, tail), held=held)


def _fits(line: Line, tail: int) -> bool:
    return _end(line, tail) - _start(line) <= SMALL * len(line.ids)


def _start(line: Line) -> int:
    # The token before the gap predicts the gap's first one where logits are shifted.
    return max(line.context - 1, 0)


def _end(line: Line, tail: int) -> int:
    return len(line.ids) - max(tail - NEAR, 0)


def _is_part(part: Sequence[int], of: Sequence[int]) -> bool:
    """Whether `part` is a subsequence: a pass whose gap said something else by now is of no use."""
    left = iter(of)
    return all(token in left for token in part)


def _free_nbytes(device: torch.device) -> int:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
