"""How what is left of a suggestion fits between the cursor and what it was made for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.suggest.insertion import FittedInsertion, fit, typed_head

code = st.text(st.sampled_from("ab()[]{}<>\"'`;,: \n\\"), max_size=24)


@given(code, code, code, code)
def test_fitting_never_changes_what_comes_out(head, insertion, tail, after):
    fitting = fit(head, insertion, tail)
    if fitting is not None:
        assert fitting.text + (tail + after)[fitting.swallowed :] == insertion + after
        assert "\n" not in tail[: fitting.swallowed]


def test_lines_that_the_editor_broke_are_left_standing():
    assert fit("  ", "y();\n}", "\n}") == FittedInsertion(text="y();", swallowed=0)


def test_an_insertion_that_is_there_already_has_nothing_to_add():
    assert fit("f(", ")", ")") is None


def test_only_what_the_line_before_the_cursor_opens_is_taken_for_closed_by_the_editor():
    assert fit("print(", "y)", ")") == FittedInsertion(text="y)", swallowed=1)
    assert fit("x = ", "y) + z", ")") is None
    assert fit("x = a ", ">> b + c", ">") is None


@pytest.mark.parametrize(
    ("before", "insertion", "count"),
    [
        ("x = pri", "print(x)", 3),
        ("x = pr", "print(x)", 0),
        ("x = pri", "nt(x)", 0),
        ("x = pri", "pri", 0),
        ("x = pri", "pri(x)", 0),
        ("naïve", "naïveté", 5),
        ("", "print", 0),
        ("mask = 0b111", "1110", 0),
        ("'acg", "acgacgt'", 0),
        ("x = ____", "_____", 0),
        ("x = (", "(((", 0),
    ],
)
def test_a_name_that_the_insertion_begins_again_is_its_head(before, insertion, count):
    assert typed_head(before, insertion) == count
