"""Seeded gaps: they lie where their kind says, and the same seed finds the same ones."""

import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lab.eval.holes import KINDS, Hole, Kind, holes

CODE = '''import os

def area(width, height):
    """Square metres."""
    if width < 0:
        raise ValueError("negative", width)
    return width * height


class Täfel:
    def paint(self, colour="😋", *layers):
        print(self, colour, sep="")
        return [layer for layer in layers]
'''


def check_holes(kind: Kind, text: str = CODE, language: str = "python") -> list[str]:
    """The texts of many gaps of one kind, none blank, none twice."""
    each = [holes(text, language, random.Random(seed), [kind], count=4) for seed in range(30)]
    assert all(len({(hole.start, hole.end) for hole in made}) == len(made) for made in each)
    found = [hole for made in each for hole in made]
    assert {hole.kind for hole in found} == {kind}
    pieces = [text[hole.start : hole.end] for hole in found]
    assert all(piece.strip() for piece in pieces)
    return pieces


def test_the_rest_of_a_line_ends_at_its_end():
    for piece in check_holes("rest_of_line"):
        assert "\n" not in piece
        assert f"{piece}\n" in CODE


def test_a_line_starts_behind_its_indentation():
    lines = {line.strip() for line in CODE.splitlines()}
    assert set(check_holes("line")) <= lines


def test_lines_are_whole_neighbours():
    for piece in check_holes("lines"):
        assert 2 <= len(piece.splitlines()) <= 13
        assert f"{piece}\n" in CODE
        assert piece[0] not in " \t"


def test_whole_lines_begin_at_the_margin_and_mostly_end_behind_their_line_break():
    pieces = check_holes("whole_lines")
    lines = [*CODE.splitlines(keepends=True), *CODE.splitlines()]
    assert all(line in lines for piece in pieces for line in piece.splitlines(keepends=True))
    assert any(piece.startswith("    return") for piece in pieces)
    assert {1, 2, 3, 4} <= {len(piece.strip().splitlines()) for piece in pieces}
    assert 0.5 < sum(piece.endswith("\n") for piece in pieces) / len(pieces) < 1


def test_arguments_are_the_inside_of_brackets():
    assert set(check_holes("arguments")) == {'"negative", width', 'self, colour, sep=""'}


def test_a_block_is_a_whole_body():
    pieces = set(check_holes("block"))
    assert 'raise ValueError("negative", width)' in pieces
    assert 'print(self, colour, sep="")\n        return [layer for layer in layers]' in pieces
    assert any(piece.startswith('"""Square') and piece.endswith("height") for piece in pieces)


def test_a_block_in_braces_leaves_the_braces():
    text = "function f(a) {\n  if (a) { return g(a, 1); }\n}\n"
    assert set(check_holes("block", text, "javascript")) == {
        "return g(a, 1);",
        "if (a) { return g(a, 1); }",
    }


def test_spans_are_of_all_lengths():
    lengths = [len(piece) for piece in check_holes("span")]
    assert min(lengths) < 4
    assert max(lengths) > 60


def test_crlf_stays_outside_a_line():
    for piece in check_holes("line", "a = 1\r\nb = 2\rc = 3\r\n"):
        assert piece in {"a = 1", "b = 2", "c = 3"}


def test_the_seed_decides():
    first = holes(CODE, "python", random.Random(7))
    assert first == holes(CODE, "python", random.Random(7))
    assert first != holes(CODE, "python", random.Random(8))
    assert len(first) == 8


def test_every_kind_is_found_unless_kinds_are_given():
    found = {hole.kind for seed in range(10) for hole in holes(CODE, "python", random.Random(seed))}
    assert found == set(KINDS)


def test_no_gap_is_longer_than_asked():
    assert all(hole.end - hole.start <= 20 for hole in holes(CODE, "python", random.Random(1), count=30, longest=20))


def test_an_unknown_language_has_lines_but_no_blocks():
    found = {hole.kind for seed in range(10) for hole in holes(CODE, "klingon", random.Random(seed))}
    assert found == {"rest_of_line", "line", "lines", "whole_lines", "span"}


@pytest.mark.parametrize("text", ["", "\n", " \t\n\n"])
def test_blank_text_has_no_gaps(text: str):
    assert holes(text, "python", random.Random(0)) == []


@given(st.text(), st.sampled_from(["python", "javascript", "json", "klingon"]), st.integers(0, 99))
def test_any_text_will_do(text: str, language: str, seed: int):
    for hole in holes(text, language, random.Random(seed)):
        assert isinstance(hole, Hole)
        assert 0 <= hole.start < hole.end <= len(text)


def test_a_large_file_costs_little_more_than_its_parse():
    text = Path(random.__file__).read_text(encoding="utf-8") * 4
    holes(text, "python", random.Random(0))
    begin = time.process_time()
    holes(text, "python", random.Random(0))
    assert time.process_time() - begin < 0.5
