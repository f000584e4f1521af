"""The old text as a draft: passes are saved where it stays, and it is found again after each kind of change."""

from __future__ import annotations

import pytest

from engine.fill.draft_tree import ROOT, accepted, tree_of
from engine.fill.ngrams import NGrams
from engine.fill.rewriting.old_text import OldText

END = 999


def passes(old: list[int], new: list[int], around: list[int] | None = None) -> int:
    """How many passes it takes to write `new`, each token as soon as it is checked."""
    wanted, text, written, known, count = [*new, END], OldText([*old, END], around or ()), list[int](), list[int](), 0
    seen = NGrams([*(around or ()), *old])
    while len(written) < len(wanted):
        tree, _ = tree_of(text.following(seen), known, text.rows, most=text.sure)
        assert len(tree.ids) <= text.rows
        base = len(written) - len(known)

        def choose(at: int, base: int = base, tree: object = tree) -> int | None:
            depth = 0
            while at != ROOT:
                depth, at = depth + 1, tree.parents[at]  # type: ignore[attr-defined]
            place = base + depth
            return wanted[place] if place < len(wanted) else None

        path, token = accepted(tree, len(known), choose)
        fresh = [tree.ids[at] for at in path][len(known) :] + ([] if token is None else [token])
        text.write(fresh)
        seen.add(fresh)
        written += fresh
        known = [] if token is None else [token]
        count += 1
        assert written == wanted[: len(written)]
    return count


OLD = [*range(100)]


@pytest.mark.parametrize(
    ("new", "most"),
    [
        (OLD, 7),
        ([*OLD[:50], 500, *OLD[50:]], 10),
        ([*OLD[:50], 500, *OLD[51:]], 10),
        ([*OLD[:50], *OLD[70:]], 9),
        ([500, 501, 502, *OLD], 12),
        ([*OLD[:30], 500, 501, *OLD[33:60], 500, 501, *OLD[63:]], 13),
        ([*range(500, 540)], 41),
    ],
    ids=["same", "put in", "replaced", "taken out", "before", "twice", "nothing stays"],
)
def test_what_stays_costs_a_pass_for_each_sixteen_tokens(new: list[int], most: int) -> None:
    assert passes(OLD, new) <= most


def test_a_long_text_that_stays_is_checked_in_longer_and_longer_drafts() -> None:
    old = [*range(2000)]
    assert passes(old, old) < 2000 / 48
    new = [*old[:1500], 5000, *old[1500:]]
    assert passes(old, new) < 2000 / 40


def test_a_word_that_is_renamed_is_drafted_renamed() -> None:
    old = [token for index in range(12) for token in (7, 100 + index, 200 + index, 300 + index)]
    new = [8 if token == 7 else token for token in old]
    first = passes(old[:4], new[:4])
    assert passes(old, new) <= first + 12


def test_a_text_that_repeats_itself_ends_where_it_should() -> None:
    old = [1, 2, 3] * 10
    assert passes(old, [1, 2, 3] * 4) <= 14


def test_a_text_that_went_on_in_the_wrong_place_is_found_again() -> None:
    """A passage is written as another one like it further down, and what follows is that of the first all the same."""
    start, end, rest = [*range(10)], [*range(10, 30)], [*range(100, 200)]
    old = [*start, 50, *end, *rest, *start, 60, *end, *range(200, 230)]
    new = [*start, 60, *end, *rest, *start, 60, *end, *range(200, 230)]
    assert passes(old, new) <= 12


def test_one_token_as_in_another_place_does_not_lead_there() -> None:
    """A width's default becomes 8: further down another default is 8, of the same words."""
    default = [1, 2, 3]
    old = [*range(10, 40), *default, 7, *range(40, 70), *default, 8, *range(70, 100)]
    new = [8 if token == 7 else token for token in old]
    text = OldText(old)
    text.write(new[: new.index(8) + 1])
    assert text.at == old.index(7)
    assert passes(old, new) <= 9


@pytest.mark.parametrize(
    ("new", "most"),
    [
        ([*range(200, 300), *OLD], 20),
        ([*range(260, 300), *OLD[:50], 500, *OLD[50:]], 16),
        ([*OLD, *range(300, 340)], 16),
        ([*range(200, 250), 500, *range(251, 400), END], 20),
        (OLD, 7),
    ],
    ids=["before", "from within", "after", "the surroundings alone", "none"],
)
def test_what_is_said_of_the_surroundings_is_drafted_too(new: list[int], most: int) -> None:
    assert passes(OLD, new, around=[*range(200, 400), END]) <= most
