"""What may come next, before a model has said it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.fill.draft_sources import OF_BEGUN_SUFFIX, OF_NEXT_LINE, OF_SUFFIX, OF_TEXT, DraftSources
from engine.fill.next_line import NextLine
from engine.fill.ngrams import DISCOUNT, LESS, NGrams

SUFFIX = [50, 51, 52]
ANYTHING = st.lists(st.integers(0, 2), max_size=30)


def following(
    context: Sequence[int], said: Sequence[int], path: Sequence[int] = (), texts: Sequence[Sequence[int]] = ()
) -> dict[int, float]:
    """What follows the gap's first tokens and a path after them, but for what follows the gap itself."""
    found = DraftSources(context, SUFFIX, texts, stops=frozenset((99,))).after(said)(path)
    return {token: likely for token, likely in found.items() if token not in SUFFIX}


def test_what_followed_the_same_tokens_in_the_file_may_follow_here():
    assert [*following([1, 2, 3, 4, 5, 1], [2])] == [3]
    assert [*following([1, 2, 3, 4, 5, 1], [2], [3])] == [4]
    assert following([1, 2, 99, 7, 1], [2]) == {}  # a marker never comes
    assert following([1, 2, 3, 4], [9]) == {}


@pytest.mark.parametrize("size", range(1, len(DISCOUNT) + 1))
def test_more_that_is_the_same_is_surer(size: int):
    text = [1, 2, 3, 4]
    assert NGrams([*text, 5]).following([*[7] * (4 - size), *text[-size:]]) == {5: 1 - DISCOUNT[size - 1]}


def test_the_latest_counts_most():
    found = NGrams([1, 2, 3, 8, 1, 2, 4, 8, 1, 2, 5, 8]).following([1, 2])
    seen = 1 + LESS + LESS**2
    assert found == pytest.approx({5: (1 - 0.45) / seen, 4: (LESS - 0.45) / seen, 3: (LESS**2 - 0.45) / seen})


def test_longer_matches_go_before_shorter_ones():
    found = NGrams([6, 1, 2, 30, 9, 2, 40, 7, 2, 40]).following([6, 1, 2])
    assert found[30] == 1 - DISCOUNT[2]
    assert 0 < found[40] < found[30]


@given(ANYTHING, ANYTHING)
def test_likelihoods_are_shares_and_of_what_followed(items: list[int], last: list[int]):
    found = NGrams(items).following(last)
    assert all(0 < likely < 1 for likely in found.values())
    assert {*found} <= {items[at + 1] for at in range(len(items) - 1) if last and items[at] == last[-1]}


@given(ANYTHING, ANYTHING, ANYTHING)
def test_a_text_that_grows_is_as_one_that_was_there(first: list[int], then: list[int], last: list[int]):
    grown = NGrams(first)
    grown.add(then)
    assert grown.following(last) == NGrams([*first, *then]).following(last)


def test_an_answer_is_drafted_as_far_as_it_is_what_was_said():
    assert following([1], [], [], [[5, 6]])[5] >= OF_TEXT
    assert following([1], [5], [], [[5, 6]])[6] >= OF_TEXT
    assert following([1], [], [5], [[5, 6]])[6] >= OF_TEXT
    # Where it was contradicted, it still says what followed the like.
    assert [*following([1], [4, 3, 6], [], [[5, 3, 6, 7]])] == [7]


def test_several_that_agree_are_surer_than_one():
    alone = following([1], [], [], [[5]])[5]
    assert following([5, 5, 1], [], [], [[5], [5]])[5] > alone


def test_what_follows_the_gap_goes_on_where_it_has_begun():
    sources = DraftSources([1], SUFFIX)
    assert sources.after([])(()) == pytest.approx({50: OF_SUFFIX})
    assert sources.after([9, 50])(()) == pytest.approx({51: OF_BEGUN_SUFFIX})
    assert sources.after([9, 50])((51,)) == pytest.approx({52: OF_BEGUN_SUFFIX})


def test_the_next_line_is_drafted_where_a_line_has_ended_and_nothing_after_it():
    line = NextLine(ids=[50, 51], spelled=lambda token: b"a\n" if token == 9 else b"\n" if token == 8 else b"a")
    sources = DraftSources([1], SUFFIX, next_line=line)
    assert sources.after([])(()) == sources.after([8])(()) == sources.after([7])(()) == {}
    assert sources.after([9])(()) == pytest.approx({50: OF_NEXT_LINE[0]})
    assert sources.after([9])((8,)) == pytest.approx({50: OF_NEXT_LINE[0]})
    assert sources.after([9, 50])(()) == pytest.approx({51: OF_NEXT_LINE[1]})
    assert DraftSources([50, 51, 52], next_line=line).after([9])((50, 51)) == {}


def test_what_was_said_is_drafted_again():
    sources = DraftSources([1], ())
    assert sources.after([5, 6, 7, 5])(()) == {6: 1 - DISCOUNT[0]}
    # Another way to fill the gap knows of the one before it.
    assert 7 in sources.after([8, 6])(())
