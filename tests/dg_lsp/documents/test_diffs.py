"""The fewest replacements between two texts: exact, minimal, never inside a line break."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.documents.diffs import replacements

TEXTS = st.lists(st.sampled_from(["a", "b", "😋", "", "\n", "\r\n", "\r", "\x0c", "  x"]), max_size=14).map("".join)


def applied(old: str, new: str) -> str:
    text = old
    for each in reversed(replacements(old, new)):
        text = text[: each.start] + each.text + text[each.end :]
    return text


@given(TEXTS, TEXTS)
def test_they_lead_from_one_text_to_the_other(old: str, new: str):
    assert applied(old, new) == new
    found = replacements(old, new)
    assert all(one.end <= other.start for one, other in pairwise(found))


@given(TEXTS, TEXTS)
def test_none_begins_or_ends_inside_a_line_break(old: str, new: str):
    for each in replacements(old, new):
        for at in (each.start, each.end):
            assert old[at - 1 : at + 1] != "\r\n" or at == 0


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", []),
        ("a\nb\nc\n", "a\nx\nc\n", [("b", "x")]),
        ("a\nb\nc\nd\n", "x\nb\nc\ny\n", [("a", "x"), ("d", "y")]),
        ("f(1\n", "f(1)\n", [("", ")")]),
        ("one\r\ntwo\r\n", "one\r\n2\r\n", [("two", "2")]),
        ("x = '😋' + a\n", "x = '😋' + b\n", [("a", "b")]),
    ],
)
def test_what_did_not_change_is_not_in_them(old: str, new: str, parts: list[tuple[str, str]]):
    assert [(old[each.start : each.end], each.text) for each in replacements(old, new)] == parts


@pytest.mark.parametrize("line", ["}\n", "\n", "x = 1\n"])
def test_lines_that_are_all_the_same_take_no_time(line: str):
    old = "(\n" + line * 100_000 + ")\n"
    new = "[\n" + line * 30_000 + "y\n" + line * 69_000 + "]\n"
    assert applied(old, new) == new


def test_no_more_is_replaced_than_has_to_be():
    old = "a\nb\na\nc\n" * 1_000
    new = old.replace("b", "x", 700).replace("c", "", 3)
    assert applied(old, new) == new
    assert sum(each.end - each.start for each in replacements(old, new)) == 703


def test_offsets_may_count_in_a_larger_text():
    (found,) = replacements("b\n", "x\n", 10)
    assert (found.start, found.end) == (10, 11)
