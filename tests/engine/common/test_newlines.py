"""Line ends that a new text takes over from the old."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.common.newlines import dominant_line_end, emptied, with_line_feeds, with_old_line_ends

PARTS = st.sampled_from(["a", "b", "😋", "\n", "\r\n", "\x0c"])
TEXTS = st.lists(PARTS, max_size=14).map("".join)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\r\nb\nc\r\n", "a\nx\nb\nc\n", "a\r\nx\r\nb\nc\r\n"),
        ("a\nb\r\nc\n", "c\nb\nc\n", "c\r\nb\r\nc\n"),
        ("a\r\nb\r\n", "a\nx\n", "a\r\nx\r\n"),
        ("a\nb\n", "a\nx\n", "a\nx\r\n"),
        ("a\rb\r", "a\nb\nx\n", "a\rb\rx\r\n"),
        ("a", "a\nb", "a\r\nb"),
        ("a\nb\r\n", "", ""),
        ("", "a\n", "a\r\n"),
    ],
)
def test_lines_that_stay_keep_their_ends_and_new_ones_have_the_file_s(old: str, new: str, expected: str):
    assert with_old_line_ends(old, new, "\r\n") == expected


@given(st.lists(PARTS | st.just("\r"), max_size=14).map("".join), ENDS)
def test_what_did_not_change_stays_to_the_sign(old: str, line_end: str):
    assert with_old_line_ends(old, with_line_feeds(old), line_end) == old


@given(TEXTS, TEXTS.map(with_line_feeds), st.sampled_from(["\n", "\r\n"]))
def test_only_line_ends_become_others(old: str, new: str, line_end: str):
    assert with_line_feeds(with_old_line_ends(old, new, line_end)) == new


@pytest.mark.processor_s(10)
@pytest.mark.parametrize("ends", ["\r\n", "\n", "\r\n\n", "\r\n\r"])
def test_lines_that_are_all_the_same_take_no_time(ends: str):
    old = "(\r\n" + ends * 10_000 + ")\r\n"
    new = "[\n" + "\n" * 8_000 + "x\n" + "\n" * 1_000 + "]\n"
    assert with_line_feeds(with_old_line_ends(old, new, dominant_line_end(old))) == new


@pytest.mark.parametrize(
    ("marked", "left"),
    [
        ("a\n▮    ▮x▮\n▮b\n", "a\nb\n"),
        ("a\r\n▮    ▮x▮\r\n▮b\r\n", "a\r\nb\r\n"),
        ("a\n▮    ▮x▮▮\nb\n", "a\n\nb\n"),
        ("a▮\n    ▮x▮▮\nb\n", "a\nb\n"),
        ("a▮\n    ▮x▮\n    ▮b\n", "a\n    b\n"),
        ("▮    ▮x▮\n    ▮b", "    b"),
        ("▮    ▮x;▮ ▮b", "     b"),
        ("a▮\r\n\r\n▮x▮\r\n▮b", "a\r\nb"),
        ("f(a,▮ ▮x▮▮)", "f(a, )"),
        ("▮▮x▮\n▮", ""),
    ],
)
def test_whole_lines_are_taken_out_and_others_are_not_joined(marked: str, left: str):
    before, lead, _, trail, after = marked.split("▮")
    assert before + emptied(before, lead + trail, after) + after == left
