"""Positions and offsets, against a reference that walks the text one character at a time."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, Range

from dg_lsp.documents.positions import Encoding, Lines, offset_at, position_at, range_of, span_of

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
UNITS = {
    "utf-8": lambda character: len(character.encode()),
    "utf-16": lambda character: len(character.encode("utf-16-le")) // 2,
    "utf-32": len,
}
# LINE SEPARATOR, NEXT LINE, form feed: line breaks for Python, not for LSP.
texts = st.text(st.sampled_from("ab \r\n\té字😋\u2028\x85\x0c"), max_size=40)
encodings = st.sampled_from(ENCODINGS)


def reference_lines(text: str) -> list[str]:
    """Lines with their breaks, the last one without."""
    return [*re.findall(r"[^\r\n]*(?:\r\n|\r|\n)", text), re.split(r"\r\n|\r|\n", text)[-1]]


def reference_offset(text: str, line: int, character: int, encoding: Encoding) -> int:
    all_lines = reference_lines(text)
    if line < 0:
        return 0
    if line >= len(all_lines):
        return len(text)
    offset = sum(map(len, all_lines[:line]))
    units = 0
    for shown in all_lines[line].rstrip("\r\n"):
        units += UNITS[encoding](shown)
        if units > character:
            break
        offset += 1
    return offset


@given(texts, st.integers(-2, 12), st.integers(-2, 60), encodings)
def test_any_position_lands_where_the_reference_says(text, line, character, encoding):
    # lsprotocol's own class refuses negative numbers; clients send them all the same.
    position = SimpleNamespace(line=line, character=character)
    assert offset_at(Lines(text), position, encoding) == reference_offset(text, line, character, encoding)


@given(texts, encodings, st.data())
def test_an_offset_survives_the_way_there_and_back(text, encoding, data):
    offset = data.draw(st.integers(0, len(text)))
    inside_crlf = text[offset - 1 : offset + 1] == "\r\n" and offset > 0
    back = offset_at(Lines(text), position_at(Lines(text), offset, encoding), encoding)
    assert back == (offset - 1 if inside_crlf else offset)


@given(texts, texts, st.data())
def test_replacing_indexes_like_indexing_afresh(text, new, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    replaced, afresh = Lines(text).replace(start, end, new), Lines(text[:start] + new + text[end:])
    assert (replaced.text, replaced.starts) == (afresh.text, afresh.starts)


@pytest.mark.parametrize(
    ("encoding", "character", "offset"),
    [
        ("utf-8", 5, 5),
        ("utf-8", 6, 5),
        ("utf-8", 9, 6),
        ("utf-16", 6, 5),
        ("utf-16", 7, 6),
        ("utf-32", 6, 6),
    ],
)
def test_a_position_inside_an_astral_character_is_its_start(encoding, character, offset):
    assert offset_at(Lines("x = '😋' + y"), Position(line=0, character=character), encoding) == offset


def test_a_line_may_end_in_lf_crlf_or_a_lone_cr_and_in_nothing_else():
    assert Lines("a\nb\r\nc\rd\u2028e\x0cf").starts == [0, 2, 5, 7]


def test_a_position_behind_a_line_stops_before_its_break():
    lines = Lines("ab\r\ncd")
    assert offset_at(lines, Position(line=0, character=99), "utf-16") == 2
    assert offset_at(lines, Position(line=9, character=0), "utf-16") == 6


def test_a_range_that_runs_backwards_is_turned_round():
    lines = Lines("abc\ndef")
    backwards = Range(start=Position(line=1, character=1), end=Position(line=0, character=2))
    assert span_of(lines, backwards, "utf-8") == (2, 5)
    assert range_of(lines, 2, 5, "utf-8").start == Position(line=0, character=2)
