"""Where else an edit may belong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.fill.replays import LONGEST, Replay, replaced, replays, with_roles
from engine.syntax.roles import role_of
from engine.syntax.tree import parsed

OLD, NEW = "def scaled(size):", "def scaled(width):"
TEXT = f'{NEW}\n    """Twice the size."""\n    resize = size * 2\n    return size\n'


def found(text: str, old: str, new: str) -> list[Replay]:
    start = text.index(new)
    return replays(text, old, new, [(start, start + len(new))], start)


def test_the_other_places_of_a_name_are_found_code_before_prose():
    lines = [TEXT[: each.start].count("\n") for each in found(TEXT, OLD, NEW)]
    assert lines[-1] == 1
    assert sorted(lines) == [1, 2, 3]
    assert {(TEXT[each.start : each.end], each.new) for each in found(TEXT, OLD, NEW)} == {("size", "width")}


def test_a_name_that_is_known_already_is_less_of_a_rename():
    known = f"{TEXT}\n\ndef other():\n    return width\n"
    assert max(each.likely for each in found(known, OLD, NEW)) < max(each.likely for each in found(TEXT, OLD, NEW))


def test_where_somebody_was_already_nothing_is_found_and_a_new_name_is_new():
    done = TEXT.replace("return size", "return width")
    mine = [(0, len(NEW)), (done.index("    return"), len(done) - 1)]
    one, *_ = replays(done, OLD, NEW, mine, 0)
    assert done[one.start : one.end] == "size"
    assert one.likely == pytest.approx(found(TEXT.replace("    return size\n", ""), OLD, NEW)[0].likely)


def test_what_stands_everywhere_goes_elsewhere_least():
    few = found("b = 2\na = 1\na = 2\n", "b = 1", "b = 2")
    many = found("b = 2\n" + "a = 1\n" * 20, "b11 = 1", "b = 2")
    assert not few, "a bare figure of one character says nothing"
    assert all(each.likely < 0 for each in many)


def test_an_edit_that_says_too_much_says_nothing():
    names = [f"name_{number}" for number in range(40)]
    text = "\n".join(" ".join(names) for _ in range(60))
    for count in (3, 40):
        old, new = " ".join(names[:count]), " ".join(f"{name} = {at}" for at, name in enumerate(names[:count]))
        new = new.replace("name", "other")
        assert bool(found(f"{new}\n{text}", old, new)) == (count == 3)


def test_insertions_and_long_edits_say_nothing():
    assert found("f(a, b)\nf(a)\n", "f(a)", "f(a, b)") == []
    long = "x" * (LONGEST + 1)
    assert replays(f"{long}\nsize", "size", long, [], 0) == []


@given(st.text(st.sampled_from("ab1 \n(.'"), max_size=40), st.text(st.sampled_from("ab1 \n(.'"), max_size=40))
def test_what_is_replaced_makes_the_new_text_of_the_old(old: str, new: str):
    text = old
    for at, was, now in reversed(list(replaced(old, new))):
        assert text[at : at + len(was)] == was
        text = text[:at] + now + text[at + len(was) :]
    assert text == new


@pytest.mark.processor_s(10)
def test_what_is_all_alike_takes_no_time():
    for old, new in (("." * 2000, ".x" * 1000), ("." * 1000, ".x" * 1000), ("ab " * 600, "b a " * 450)):
        assert "".join(now for _, _, now in replaced(old, new))
    zeros = "0, " * 600
    assert list(replaced(f"[{zeros}1, {zeros}]", f"[{zeros}2, {zeros}]")) == [(1801, "1", "2")]
    text = "".join(f"{'.' * 90}{number}+size+{'.' * 90}\n" for number in range(60))
    line = f"{'.x' * 40}+width+{'.x' * 40}"
    assert replays(f"{line}\n{text}", line.replace("width", "size"), line, [(0, len(line))], 0)


def by_tree(before: str, old: str, new: str) -> list[Replay]:
    """What follows where the first `old` lines of a Python file became `new`."""
    text = before.replace(old, new, 1)
    start = text.index(new)
    found_ = replays(text, old, new, [(start, start + len(new))], start)
    trees = [parsed(each, "python") for each in (before, text)]
    assert all(trees)
    here = [role_of(trees[1], each.start, each.end) for each in found_]
    edits = {each.edit.start: len(each.edit.old) for each in found_}
    return with_roles(
        found_, here, {at: role_of(trees[0], start + at, start + at + size) for at, size in edits.items()}
    )


def test_a_parameter_is_followed_in_its_function_first():
    text = f"{TEXT}\n\ndef other():\n    return size\n".replace(NEW, OLD)
    found_ = by_tree(text, OLD, NEW)
    inside = text.replace(OLD, NEW).index("\n\ndef other")
    assert {each.end < inside for each in found_[:2]} == {True}
    apart = [each.likely for each in found_ if each.start > inside]
    assert max(apart) < found_[1].likely - 2


def test_a_name_that_something_else_binds_still_is_less_of_a_rename():
    once = by_tree("size = 1\nprint(size)\n", "size = 1", "width = 1")
    twice = by_tree("size = 1\nprint(size)\nsize = 2\n", "size = 1", "width = 1")
    assert max(each.likely for each in twice) < once[0].likely - 1


def test_what_the_new_name_is_made_of_stays():
    text = "step = scale(1)\na = step + 1\nb = scale(1) + 2\n"
    (one,) = found(text, "a = scale(1) + 1", "a = step + 1")
    assert text[: one.start].count("\n") == 2


def test_what_was_done_before_is_likelier_to_go_on():
    start = TEXT.index(NEW)
    again = replays(TEXT, OLD, NEW, [(start, start + len(NEW))], start, [("f(size)", "f(width)")])
    assert again[0].likely > found(TEXT, OLD, NEW)[0].likely
