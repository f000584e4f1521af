"""A tree that was edited is the tree of the edited text."""

import random
import statistics
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.common.sequences import common_head, common_tail
from engine.syntax.budget import Budget
from engine.syntax.tree import SyntaxTree, Trees, parsed

PIECES = st.sampled_from(
    ["x", "\r", "\n", "\r\n", "(", ")", "é", "😋", "\ud800", "'", '"""', "#", "if x:", "\0", "    "]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)


def of(text: str, language: str = "python") -> SyntaxTree:
    tree = parsed(text, language)
    assert tree is not None
    return tree


def check_same(edited: SyntaxTree | None) -> None:
    """An edited tree shows the nodes, the bytes and the places of a new one."""
    assert edited is not None
    new = of(edited.text, edited.language)
    assert edited.data == new.data
    assert str(edited.root) == str(new.root)
    assert edited.root.end_point == new.root.end_point


@given(TEXTS, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5), TEXTS), max_size=6))
def test_edits_add_up(text, edits):
    tree = of(text)
    for start, size, replacement in edits:
        start = min(start, len(tree.text))
        end = min(start + size, len(tree.text))
        edited = tree.edited(start, end, replacement)
        check_same(edited)
        tree = edited


@given(TEXTS, TEXTS, st.sampled_from(["python", "javascript", "yaml", "bash"]))
def test_an_update_finds_the_edit(before, after, language):
    check_same(of(before, language).updated(after))


@given(TEXTS)
def test_offsets_and_bytes_convert_both_ways(text):
    tree = of(text)
    for offset in range(len(text) + 1):
        assert tree.offset(tree.byte(offset)) == offset


def test_the_old_tree_stays_as_it_was():
    tree = of("x = 1\n")
    edited = tree.edited(4, 5, "(")
    assert edited is not None
    assert edited.root.has_error
    assert not tree.root.has_error
    assert tree.text == "x = 1\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends_end_lines(end):
    tree = of(f"if x:{end}    y = '😋'{end}z = 1{end}")
    assert not tree.root.has_error
    assert [child.type for child in tree.root.named_children] == ["if_statement", "expression_statement"]


def test_a_line_end_can_be_cut_in_two_and_joined():
    tree = of("a = 1\r\nb = 2")
    cut = tree.edited(6, 6, "c = 3")
    check_same(cut)
    assert cut is not None
    check_same(cut.edited(6, 11, ""))


@given(st.text(max_size=20), st.text(max_size=20))
def test_common_ends(left, right):
    head = common_head(left, right)
    assert left[:head] == right[:head]
    assert head == min(len(left), len(right)) or left[head] != right[head]
    tail = common_tail(left, right)
    assert left[len(left) - tail :] == right[len(right) - tail :]
    assert tail == min(len(left), len(right)) or left[-tail - 1] != right[-tail - 1]


def test_a_parse_stops_when_its_time_is_up():
    begin = time.process_time()
    assert parsed("[x, (y)]\n" * 400_000, "python", Budget(20)) is None
    assert time.process_time() - begin < 1.0
    assert parsed("x\n", "python", Budget(1000)) is not None


def test_an_edit_stops_when_its_time_is_up():
    ticks = iter([0.0, *[10.0] * 1000])
    assert of("x\n" * 1000).edited(0, 0, "(", Budget(1, clock=lambda: next(ticks))) is None


def test_a_keystroke_in_a_large_file_costs_milliseconds():
    lines = ["def f(a, b=1):", "    if a > b:", "        return [a, 'text', {b: 2}]", "    return a", ""]
    text = "\n".join(lines * 4000)
    tree = of(text)
    rng = random.Random(0)
    times = []
    for letter in "value = other(1)":
        place = rng.choice([at for at in range(0, len(text), 997) if text[at] == "\n"]) + 1
        begin = time.process_time()
        assert tree.edited(place, place, letter + "\n") is not None
        times.append(time.process_time() - begin)
    assert statistics.median(times) < 0.1


class TestTrees:
    def test_a_known_text_is_edited_not_parsed(self):
        trees = Trees()
        first = trees.tree("x = 1\n" * 50, "python")
        assert trees.tree("x = 1\n" * 50, "python") is first
        second = trees.tree("x = 1\n" * 49 + "x = 2\n", "python")
        check_same(second)
        assert trees.nbytes == 300

    def test_other_texts_and_languages_are_kept_apart(self):
        trees = Trees()
        trees.tree("x = 1\n" * 50, "python")
        trees.tree("x = 1\n" * 50, "javascript")
        trees.tree("# another\n", "python")
        assert trees.nbytes == 610

    def test_only_so_many_are_kept(self):
        trees = Trees(capacity=2)
        for letter in "abc":
            trees.tree(letter * 10, "python")
        assert trees.nbytes == 20

    def test_an_unknown_language_has_no_tree(self):
        assert Trees().tree("x", "klingon") is None
