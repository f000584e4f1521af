"""What a text elsewhere becomes in a gap. `▮` marks the gap."""

from __future__ import annotations

import pytest

from dg_lsp.workspace.matches import look_up
from dg_lsp.workspace.text_index import TextIndex


def texts(gap: str, *others: str, own: str = "", number: int = 0) -> list[str]:
    index = TextIndex(bucket_bits=6)
    for place, other in enumerate(others):
        index.add(f"other{place}.py", other)
    if own:
        index.add("gap.py", own)
    prefix, suffix = gap.split("▮")
    return [found.text for found in look_up([index], "gap.py", prefix, suffix, number=number)]


@pytest.mark.parametrize(
    ("gap", "other", "expected"),
    [
        ("if x is None:\n    ▮\n", "if x is None:\n    raise ValueError(x)\n", "raise ValueError(x)"),
        ("    if y is None:\n        ▮\n", "if x is None:\n    raise ValueError(x)\n", "raise ValueError(y)"),
        ("    if y is None:\n        ra▮\n", "if x is None:\n    raise ValueError(x)\n", "ise ValueError(y)"),
        ("check(▮)\n", "result = check(left, right)\n", "left, right"),
        ("check(▮, right)\n", "result = check(left, right)\n", "left"),
        ("value =▮\n", "value = call()\n", " call()"),
        ("value = ▮\n", "value = call()\n", "call()"),
        ("value = ca▮\n", "value = call()\n", "ll()"),
        ('    "one",\n    ▮\n    "three",\n', 'x = [\n  "one",\n  "two",\n  "three",\n]\n', '"two",'),
        ("def f(a):\n▮\n", "def f(a):\n    return a\n", "    return a"),
        ("def f(b):\n▮\n", "class C:\n    def f(a):\n        return a\n", "    return b"),
        (
            "try:\n    go(a)\n    ▮\nnext(a)\n",
            "    try:\n        go(x)\n        if x:\n            stop(x)\n    next(x)\n",
            "if a:\n        stop(a)",
        ),
        ("one()\n▮three()\n", "one()\ntwo()\nthree()\n", "two()\n"),
    ],
)
def test_what_stood_there_is_found_with_names_and_indent_of_the_gap(gap: str, other: str, expected: str):
    assert expected in texts(gap, other)[:1]


def test_both_sides_count():
    first = "start(x)\nfirst()\nend(x)\n"
    second = "start(x)\nsecond()\nstop(x)\n"
    assert texts("start(x)\n▮\nend(x)\n", first, second)[0] == "first()"
    assert texts("start(x)\n▮\nstop(x)\n", first, second)[0] == "second()"


def test_a_gap_is_no_workspace_match_of_itself():
    own = "one()\ntwo()\nthree()\n"
    assert "two()" in texts("one()\n▮\nthree()\n", own=own)
    assert texts("one()\n▮\nthree()\n", own=own, number=2) == []
    assert texts("one()\n▮\n\nthree()\n", own="one()\n\n\nthree()\n", number=2) == []


@pytest.mark.parametrize(
    "gap", ["▮", "▮\n", "\n\n▮", "x▮", "(▮", "   ▮   \n", "\ud83d\ude0b = '😋▮'", "a" * 5000 + "(▮"]
)
def test_any_gap_may_be_asked_about(gap: str):
    gap = gap.encode("utf-16", "surrogatepass").decode("utf-16")
    assert isinstance(texts(gap, "x = (1)\n", "(", "a" * 5000 + "(b)\n"), list)


def test_behind_its_time_a_look_up_has_the_likeliest_alone():
    index = TextIndex(bucket_bits=6)
    for place, other in enumerate(("first()", "second()")):
        index.add(f"other{place}.py", f"start(x)\n{other}\nend(x)\n")
    found = [look_up([index], "gap.py", "start(x)\n", "\nend(x)\n", within_s=limit_s) for limit_s in (60.0, 0.0)]
    assert [len(each) for each in found] == [2, 1]
    assert found[0][0] == found[1][0]
