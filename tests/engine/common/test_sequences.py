import pytest

from engine.common.sequences import overlaps


@pytest.mark.parametrize(
    ("left", "right", "sizes"),
    [
        ("f(aa", "aab", [2, 1]),
        ("abab", "abab", [4, 2]),
        ("ab", "b", [1]),
        ("ab", "a", []),
        ("", "a", []),
        ("a", "", []),
        (["x = 1", "y"], ["y", "z"], [1]),
    ],
)
def test_ends_that_the_other_begins_with_come_longest_first(left: str, right: str, sizes: list[int]):
    assert list(overlaps(left, right)) == sizes
