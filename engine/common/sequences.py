"""What sequences of one type have in common: texts, or lists of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def common_head(left: Sequence[object], right: Sequence[object]) -> int:
    """How many items both begin with."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_tail(left: Sequence[object], right: Sequence[object]) -> int:
    """How many items both end with."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[len(left) - middle : len(left) - low] == right[len(right) - middle : len(right) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def common_ends(left: Sequence[object], right: Sequence[object]) -> tuple[int, int]:
    """How many items both begin with, and of the rest end with."""
    head = common_head(left, right)
    return head, common_tail(left[head:], right[head:])


def went_on(items: Sequence[Item], longest: int, count: int) -> Sequence[Item]:
    """At most `count` items that followed where the last ones, as many as possible up to `longest`, stood before; of
    several such places the latest."""
    for length in range(min(longest, len(items) - 1), 0, -1):
        last = items[-length:]
        for end in range(len(items) - 1, length - 1, -1):
            if items[end - length : end] == last:
                return items[end : end + count]
    return items[:0]
