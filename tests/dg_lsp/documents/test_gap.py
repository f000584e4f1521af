"""What the engine is shown around a cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.documents.diffs import Replacement
from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.gap import WINDOW_CHARS, gap_at, text_window
from dg_lsp.documents.positions import Lines


def snapshot(text: str) -> Snapshot:
    return Snapshot(uri="file:///a", language="python", version=1, lines=Lines(text))


@given(st.text(max_size=60), st.data())
def test_a_small_document_is_shown_whole(text, data):
    cursor = data.draw(st.integers(0, len(text)))
    assert text_window(gap_at(snapshot(text), cursor)) == (text[:cursor], text[cursor:])


HUGE = {width: snapshot(f"{'x' * (width - 1)}\n" * (400_000 // width)) for width in (7, 100, 100_000)}


@given(st.integers(0, 400_000), st.sampled_from(sorted(HUGE)))
def test_a_huge_document_is_shown_around_the_cursor_in_whole_lines(cursor, width):
    text = HUGE[width].text
    cursor = min(cursor, len(text))
    prefix, suffix = text_window(gap_at(HUGE[width], cursor))
    assert text[cursor - len(prefix) : cursor + len(suffix)] == prefix + suffix
    assert min(cursor, WINDOW_CHARS - width) <= len(prefix) <= WINDOW_CHARS + 16_000
    assert min(len(text) - cursor, WINDOW_CHARS - width) <= len(suffix) <= WINDOW_CHARS
    if width <= 100:
        assert (cursor - len(prefix)) % width == 0
        assert (cursor + len(suffix)) % width == 0


def test_typing_keeps_the_start_of_what_is_shown():
    text = "some = code\n" * 50_000
    one, _ = text_window(gap_at(snapshot(text), 300_000))
    two, _ = text_window(gap_at(snapshot(f"{text[:300_000]}x{text[300_000:]}"), 300_001))
    assert two == one + "x"


def test_the_selected_completion_is_part_of_the_text():
    gap = gap_at(snapshot("x = pri\ny"), 7, Replacement(start=4, end=7, text="print"))
    assert text_window(gap) == ("x = print", "\ny")
    assert gap.ends_line


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_within_a_line_that_goes_on_there_is_one_line(line_end: str):
    text = f"one{line_end}two"
    assert gap_at(snapshot("foo()"), 4).within(text) == "one"
    assert gap_at(snapshot("foo("), 4).within(text) == text


def test_a_line_that_goes_on_is_not_ended():
    assert gap_at(snapshot("foo(  \n)"), 4).ends_line
    assert not gap_at(snapshot("foo()"), 4).ends_line
    assert gap_at(snapshot("a = '😋' + \r\n"), 10).head == "a = '😋' + "
