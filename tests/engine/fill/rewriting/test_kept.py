"""What a rewrite may not change."""

from __future__ import annotations

import pytest

from engine.common.request import FillRequest
from engine.fill.rewriting.kept import lost_names, with_kept

OLD = "def area(width, height=1):\n    return width * height"


def request_of(suffix: str = "", instruction: str = "Simplify.", old: str = OLD) -> FillRequest:
    return FillRequest(prefix="", old=old, suffix=suffix, instruction=instruction, task="rewrite")


@pytest.mark.parametrize(
    ("suffix", "instruction", "new", "lost"),
    [
        ("print(area(2))", "Simplify.", "def surface(w, h=1):\n    return w * h", ["area"]),
        ("print(1)", "Simplify.", "def surface(w, h=1):\n    return w * h", []),
        ("print(area(2))", "rename area to surface", "def surface(w, h=1):\n    return w * h", []),
        ("print(area(2))", "call it surface, rename it", "def surface(w):\n    return w", []),
        ("print(area(2, height=3))", "Simplify.", "def area(w, h=1):\n    return w * h", ["height"]),
        ("print(area(max(1, 2), height=3))", "Simplify.", "def area(w, h=1):\n    return w * h", ["height"]),
        ("print(area(2, height=3))", "Simplify.", "def area(w, *, height: int = 1):\n    return w * height", []),
        ("print(area(2) == 3)", "Simplify.", "def area(w, h=1):\n    return w * h", []),
    ],
)
def test_names_that_the_file_uses_stay_unless_somebody_says_otherwise(
    suffix: str, instruction: str, new: str, lost: list[str]
) -> None:
    assert lost_names(request_of(suffix, instruction), new) == lost


@pytest.mark.parametrize(
    ("old", "new"), [("fn area() {}", "fn size() {}"), ("const area = 1;", "const size = 1;"), ("struct area;", "")]
)
def test_names_count_in_other_languages(old: str, new: str) -> None:
    assert lost_names(request_of("area()", old=old), new) == ["area"]


def test_kept_spans_stay_while_the_rest_changes() -> None:
    old = "first = 1\nsecond = 2\nthird = 3"
    new = "one = 10\ntwo = 20\nthree = 30"
    span = (old.index("second"), old.index("third") - 1)
    assert with_kept(old, new, [span]) == "one = 10\nsecond = 2\nthree = 30"
    assert with_kept(old, new, []) == new


def test_nothing_is_put_into_a_kept_span() -> None:
    assert with_kept("a b c", "a x b y c", [(0, 5)]) == "a b c"
