"""From one text to another: the fewest whole lines that must be replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rapidfuzz.distance import LCSseq

from engine.core.sequences import common_ends
from engine.text.newlines import lines

_MOST_PAIRS = 4 * 10**8
"""Lines by lines that are compared: a tenth of a second, and 50 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """[start, end) of a text gives way to `new`."""

    start: int
    end: int
    new: str


def replacements(old: str, new: str, shift: int = 0) -> list[Replacement]:
    """What leads from `old` to `new`, in order; lines that did not change are not in it. `shift`: where `old` is."""
    before, after = lines(old), lines(new)
    starts = list(accumulate(map(len, before), initial=shift))
    return [
        _without_common_ends(starts[first], "".join(before[first:last]), "".join(after[start:end]))
        for first, last, start, end in _changed(before, after)
    ]


def _changed(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """[first, last) of `before` that gives way to [start, end) of `after`."""
    head, tail = common_ends(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    # Beyond that, all between the first change and the last is one.
    same = LCSseq.opcodes(old, new) if len(old) * len(new) <= _MOST_PAIRS else ()
    at, to = head, head
    for part in same:
        if part.tag == "equal":
            if (at, to) != (head + part.src_start, head + part.dest_start):
                yield at, head + part.src_start, to, head + part.dest_start
            at, to = head + part.src_end, head + part.dest_end
    if (at, to) != (len(before) - tail, len(after) - tail):
        yield at, len(before) - tail, to, len(after) - tail


def _without_common_ends(start: int, old: str, new: str) -> Replacement:
    """A cursor that stands in what is the same stays where it is, if only what differs is replaced."""
    head, tail = common_ends(old, new)
    # No edit may begin or end inside of a line break.
    head -= old[head - 1 : head] == "\r" and head > 0
    tail -= tail > 0 and old[len(old) - tail] == "\n" and old[len(old) - tail - 1 : len(old) - tail] == "\r"
    return Replacement(start=start + head, end=start + len(old) - tail, new=new[head : len(new) - tail])
