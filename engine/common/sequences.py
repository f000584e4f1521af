"""Common parts of sequences: texts, or lists of tokens or lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def common_head(left: Sequence[object], right: Sequence[object]) -> int:
    """The length of the common beginning."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_tail(left: Sequence[object], right: Sequence[object]) -> int:
    """The length of the common end."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[len(left) - middle : len(left) - low] == right[len(right) - middle : len(right) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def common_ends(left: Sequence[object], right: Sequence[object]) -> tuple[int, int]:
    """The lengths of the common beginning, and of the common end of the rest."""
    head = common_head(left, right)
    return head, common_tail(left[head:], right[head:])


def overlaps(left: Sequence[object], right: Sequence[object]) -> Iterator[int]:
    """The lengths of the ends of `left` that `right` begins with, the longest first."""
    for size in range(min(len(left), len(right)), 0, -1):
        if left[-size] == right[0] and left[-size:] == right[:size]:
            yield size
