"""Which text after a cursor an insertion closes by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.common.closers import closes

code = st.text(st.sampled_from("ab()[]{}<>\"'`;,: \n\\=-"), max_size=24)


@pytest.mark.parametrize(
    ("line", "insertion", "tail"),
    [
        ("foo(▮)", "x)", ")"),
        ("foo(▮)", "f(x))", ")"),
        ("foo(▮).b", "x).a", ")"),
        ("foo(bar(▮))", "x))", "))"),
        ("foo([▮])", "x])", "])"),
        ("foo(bar(▮)", "x))", ")"),
        ("   (+ x ▮))", "1)", ")"),
        ("f(a)[▮]", "0]", "]"),
        ("f(a) + g(▮)", "x)", ")"),
        ('print("▮")', 'hi")', '")'),
        ('print("▮", "b")', 'a"', '"'),
        ("f(▮)", "')')", ")"),
        ("f(▮)", "don't)", ")"),
        ("say(\"It's {a['▮'}", "b']", "'"),
        ("if (x) {▮}", "\n  y();\n}", "}"),
        ("a: Array<▮>", "T>", ">"),
        ("a: Map<▮>", "K, () => void> = x", ">"),
    ],
)
def test_what_an_insertion_closes(line, insertion, tail):
    head, after = line.split("▮")
    assert closes(head, insertion, tail, after.removeprefix(tail))


@pytest.mark.parametrize(
    ("line", "insertion", "tail"),
    [
        ("foo(▮)", "x", ")"),
        ("foo(▮)", "f(x)", ")"),
        ("foo(bar(▮)", "x)", ")"),
        ("foo(▮)", "')'", ")"),
        ("if (x) ▮}", " {\n  y();\n}", "}"),
        ("foo(▮);", "x); y();", ");"),
        ("a = b▮ + c", "x + ", " + "),
        ("v: Map<string, ▮> = x", "() => void", ">"),
        ("while (list▮>0)", "->count", ">"),
        ("x = a ▮> b", ">> 2 ", ">"),
        ("x = a <b ▮> c", "-> d ", ">"),
        ("Foo<a =▮> b", "T> c", ">"),
        ("async (name▮> {", ") => ", ">"),
        ("# the user▮'s name", " doesn't know the other", "'"),
        ('x = ▮"a"', '"b" + ', '"'),
        ('# a "▮"c"', 'b"', '"'),
        ("foo(▮)", "", ")"),
        ("foo(▮)", "x)", ""),
    ],
)
def test_what_it_does_not(line, insertion, tail):
    head, after = line.split("▮")
    assert not (tail and closes(head, insertion, tail, after.removeprefix(tail)))


@pytest.mark.parametrize(("tail", "found"), [("):", True), (");", False), (")::", False), (":", False)])
def test_what_follows_a_closer_may_follow_it_in_the_insertion_too(tail, found):
    assert closes("if f(", "x):\n  return x", tail, followers=";,: ") == found


@given(code, code, code)
def test_what_is_closed_occurs_in_the_insertion_in_that_order(head, insertion, tail):
    """Editors hide an item whose text does not hold what its range replaces."""
    characters = iter(insertion)
    if closes(head, insertion, tail, followers=";,: "):
        assert all(character in characters for character in tail)


def test_of_a_line_of_megabytes_only_what_is_near_counts():
    assert not closes("g(f(", "1)", ")", "")
    assert not closes("g(f(", "1)", ")", "x" * 2000 + ")")
    assert closes("g(f(" + "x" * 900, "1)", ")", ")")
    assert not closes("g(f(" + "x" * 2000, "1)", ")", ")")


def test_where_the_rest_of_the_line_is_not_told_the_innermost_bracket_is_closed():
    assert closes("rows.map((", "row) => (", ")")
    assert closes("g(f(", "1)", ")")
    assert not closes("g(f", "(1)", ")")
