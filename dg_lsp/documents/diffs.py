"""Line diffs between two texts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from engine.common.changes import changed
from engine.common.newlines import lines
from engine.common.sequences import common_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """[start, end) of a text gives way to `text`."""

    start: int
    end: int
    text: str


def replacements(old: str, new: str, shift: int = 0) -> list[Replacement]:
    """The replacements that turn `old` into `new`, in order, without unchanged lines. `shift`: the offset of `old`."""
    before, after = lines(old), lines(new)
    starts = list(accumulate(map(len, before), initial=shift))
    return [
        _without_common_ends(starts[first], "".join(before[first:last]), "".join(after[start:end]))
        for first, last, start, end in changed(before, after)
    ]


def _without_common_ends(start: int, old: str, new: str) -> Replacement:
    """Replace only what differs, so that a cursor in unchanged text stays where it is."""
    head, tail = common_ends(old, new)
    # No edit may begin or end inside a line break.
    head -= old[head - 1 : head] == "\r" and head > 0
    tail -= tail > 0 and old[len(old) - tail] == "\n" and old[len(old) - tail - 1 : len(old) - tail] == "\r"
    return Replacement(start=start + head, end=start + len(old) - tail, text=new[head : len(new) - tail])
