"""What an insertion makes redundant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.suggest.insertion import FittedInsertion, fit, redundant, typed_head

code = st.text(st.sampled_from("ab()[]{}<>\"'`;,: \n\\"), max_size=24)


@pytest.mark.parametrize(
    ("insertion", "tail", "count"),
    [
        ("x)", ")", 1),
        ("x", ")", 0),
        ("f(x)", ")", 0),
        ("f(x))", ")", 1),
        ("x))", "))", 2),
        ("x)", "))", 1),
        ("x])", "])", 2),
        ('hello")', '")', 2),
        ('"a", "b")', ")", 1),
        ('"a"', '"', 0),
        ("')')", ")", 1),
        ("')'", ")", 0),
        ("x);", ");", 2),
        ("x)", ");", 1),
        ("x", " + y", 0),
        ("x):\n    return x", "):", 2),
        (" {\n  y();\n}", "}", 0),
        ("\n  y();\n}", "}", 1),
        ("don't)", ")", 1),
        ("", ")", 0),
    ],
)
def test_closers_are_redundant_where_the_insertion_closes_what_it_did_not_open(insertion, tail, count):
    assert redundant(insertion, tail) == count


@pytest.mark.parametrize(
    ("line", "insertion", "count"),
    [
        ("foo(▮)", "x)", 1),
        ("foo(bar(▮)", "x)", 0),
        ("foo(bar(▮)", "x))", 1),
        ("foo(bar(▮))", "x))", 2),
        ("   (+ x ▮))", "1)", 1),
        ("f(a)[▮]", "0]", 1),
        ("f(a) + g(▮)", "x)", 1),
        ('print("▮")', 'hi")', 2),
    ],
)
def test_what_the_line_leaves_open_is_the_insertion_s_to_close(line, insertion, count):
    head, tail = line.split("▮")
    assert redundant(insertion, tail, head) == count


@given(code, code)
def test_what_is_redundant_occurs_in_the_insertion_in_that_order(insertion, tail):
    """Editors hide an item whose text does not hold what its range replaces."""
    characters = iter(insertion)
    assert all(character in characters for character in tail[: redundant(insertion, tail)])


@given(code, code, code)
def test_fitting_never_changes_what_comes_out(insertion, tail, after):
    fitting = fit(insertion, tail)
    if fitting is not None:
        assert fitting.text + (tail + after)[fitting.swallowed :] == insertion + after
        assert "\n" not in tail[: fitting.swallowed]


def test_lines_that_the_editor_broke_are_left_standing():
    assert fit("y();\n}", "\n}") == FittedInsertion(text="y();", swallowed=0)


def test_an_insertion_that_is_there_already_has_nothing_to_add():
    assert fit(")", ")") is None


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
        ("x = (", "(((", 0),
    ],
)
def test_a_name_that_the_insertion_begins_again_is_its_head(before, insertion, count):
    assert typed_head(before, insertion) == count


def test_of_a_line_of_megabytes_only_what_is_near_counts():
    assert redundant("1)", ")", "g(f(") == 0
    assert redundant("1)", ")" + "x" * 2000 + ")", "g(f(") == 0
    assert redundant("1)", ")", "g(f(" + "x" * 2000) == 1
