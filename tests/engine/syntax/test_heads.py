"""The longest part of a broken fill that may be offered. Between the markers stands the fill."""

import pytest

from engine.syntax.budget import Budget
from engine.syntax.heads import heads, longest_valid_head
from engine.syntax.validator import Validator


def check_head(marked: str, expected: str | None, language: str = "python") -> None:
    before, fill, after = marked.split("▮")
    assert longest_valid_head(Validator(before, after, language), fill) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("def f():\n    ▮a = 1\n    b = 2\n    c = (▮\n", "a = 1\n    b = 2"),
        ("def f():\n    ▮a = 1\n    if a:▮\n", "a = 1"),
        ("x = ▮foo(1) + bar(▮\n", "foo(1) + bar"),
        ("x = ▮[1, 2] + [3▮\n", "[1, 2]"),
        ("x = ▮)▮\n", None),
        ("x = ▮((▮\n", None),
        ("f(▮1, g(2), h(▮)\n", "1, g(2), h"),
        ("▮def f():\n    return 1\n\n\ndef g():▮\n", "def f():\n    return 1"),
        ("▮a = 1\nb = 2\nc = (\n▮def f():\n    pass\n", "a = 1\nb = 2\n"),
        ("def f():\r\n    ▮a = 1\r\n    b = (▮\r\n", "a = 1"),
    ],
)
def test_python(marked, expected):
    check_head(marked, expected)


@pytest.mark.parametrize(
    ("language", "marked", "expected"),
    [
        ("javascript", "function f() {\n  ▮const a = 1;\n  if (a) {▮\n}\n", "const a = 1;"),
        ("c", "int f(void)\n{\n    ▮int a = 1;\n    return (a;▮\n}\n", "int a = 1;"),
        ("json", '{"a": ▮[1, 2], "b": [▮}\n', "[1, 2]"),
        ("typescript", "const a = new Map<string, ▮Array<number>> = b;▮>();\n", "Array<number>"),
        ("bash", "▮echo a\necho b\nif true▮\n", "echo a\necho b"),
    ],
)
def test_other_languages(language, marked, expected):
    check_head(marked, expected, language)


def test_a_head_that_makes_the_code_whole_is_better_than_a_longer_one():
    check_head("x = f(▮1)\ny = g(▮", "1)")


def test_unfinished_code_may_stay_unfinished():
    check_head("f(▮1, 2, ]▮", "1, 2")


def test_heads_are_shorter_never_blank_and_never_twice():
    found = list(heads("  \n  a(b)\n  c(d, e)\n", "\n", "python"))
    assert found == list(dict.fromkeys(found))
    assert found[0] == "  \n  a(b)"
    assert all(head.strip() for head in found)


@pytest.mark.parametrize("after", ["\n", "    return x\n"])
@pytest.mark.parametrize("fill", ["  y = 1  \n  z = = 3\n", "a = 1\t\r\n\r\n  b = (\r\n", "a()\n \n\nb(\r"])
def test_a_head_is_the_fill_as_far_as_it_goes(fill: str, after: str):
    found = list(heads(fill, after, "python"))
    assert found
    assert all(fill.startswith(head) for head in found)


def test_no_time_no_head():
    assert longest_valid_head(Validator("x = ", "\n", "python"), "foo(1) + (", Budget(0)) is None
    assert longest_valid_head(Validator("x = ", "\n", "klingon"), "foo(1) + (") is None


def test_another_line_break_makes_no_head():
    assert list(heads("(\r", ")b", "python")) == []
