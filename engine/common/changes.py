"""A line diff with the fewest changed lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rapidfuzz.distance import LCSseq

from engine.common.sequences import common_ends

_MOST_PAIRS = 4 * 10**8
"""Limit of the product of both lengths: 0.1 s and 50 MB."""


def changed(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Ranges [first, last) of `before` that [start, end) of `after` replace, in order."""
    head, tail = common_ends(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    # Beyond the limit everything between the first and the last change is one range.
    same = LCSseq.opcodes(old, new) if len(old) * len(new) <= _MOST_PAIRS else ()
    at, to = head, head
    for part in same:
        if part.tag == "equal":
            if (at, to) != (head + part.src_start, head + part.dest_start):
                yield at, head + part.src_start, to, head + part.dest_start
            at, to = head + part.src_end, head + part.dest_end
    if (at, to) != (len(before) - tail, len(after) - tail):
        yield at, len(before) - tail, to, len(after) - tail
