"""What sequences have in common."""

from collections.abc import Sequence

import pytest

from engine.common.sequences import went_on


@pytest.mark.parametrize(
    ("items", "longest", "count", "expected"),
    [
        ("for x in a; for x", 3, 4, " in "),
        ("for x in a; for y in b; for ", 4, 1, "y"),
        ("1ab2cab3 b4 ab", 2, 2, "3 "),
        ("1ab2 xb3 ab", 1, 2, "3 "),
        ("aaaa", 2, 3, "a"),
        ("ab", 4, 3, ""),
        ("aba", 4, 0, ""),
        ("a", 4, 3, ""),
        ("", 4, 3, ""),
    ],
)
def test_what_followed_the_last_items_before(items: Sequence[str], longest: int, count: int, expected: Sequence[str]):
    assert went_on(items, longest, count) == expected
    assert went_on([*items], longest, count) == [*expected]
