"""What may come next, before a model has said it."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from engine.fill.draft_sources import AHEAD, LONGEST, PLACES, SHORTEST, DraftSources, went_on_at

SUFFIX = [50, 51, 52]


def drafts(context: list[int], written: list[int], texts: Sequence[Sequence[int]] = ()) -> list[list[int]]:
    sources = DraftSources(context, SUFFIX, texts, stops=frozenset((99,)))
    return [[*each.ids] for each in sources.after(written)]


def test_what_followed_the_same_tokens_in_the_file_may_follow_here():
    assert drafts([1, 2, 3, 4, 5, 1], [2])[0] == [3, 4, 5, 1, 2]
    assert drafts([1, 2, 3, 1, 2, 3, 99, 7, 1], [2])[0] == [3]  # nothing goes on across a marker
    assert drafts([1, 2, 3, 4], [2]) == [SUFFIX]  # one token alone tells too little


def test_more_that_is_the_same_is_surer_and_the_last_place_comes_before_others():
    context = [8, 1, 2, 30, 31, 9, 1, 2, 40, 41, 7, 1, 2, 60, 9, 1]
    found = DraftSources(context, SUFFIX).after([2])
    assert [each.ids[0] for each in found[:2]] == [40, 60]
    assert found[0].likely > found[1].likely
    assert len(found) <= PLACES + 1


def test_an_answer_is_drafted_as_far_as_it_is_what_was_said_and_what_follows_the_gap_behind_it():
    assert drafts([1], [], texts=[[5, 6]])[0] == [5, 6, *SUFFIX]
    assert drafts([1], [5], texts=[[5, 6]])[0] == [6, *SUFFIX]
    # Where it was contradicted, it still says what followed the like.
    assert drafts([1], [4, 3, 6], texts=[[5, 3, 6, 7]])[0] == [7, *SUFFIX]


def test_what_follows_the_gap_goes_on_where_it_has_begun():
    assert drafts([1], []) == [SUFFIX]
    assert drafts([1], [9, 50]) == [SUFFIX[1:]]
    begun, new = (DraftSources([1], SUFFIX).after(written)[-1].likely for written in ([9, 50], [9]))
    assert begun > new


@given(st.lists(st.integers(0, 2), max_size=30))
def test_places_are_told_by_what_came_before_them(items: list[int]):
    found = [*went_on_at(items, LONGEST, SHORTEST, AHEAD)]
    assert [alike for alike, _ in found] == sorted((alike for alike, _ in found), reverse=True)
    slow = [
        (
            max(same for same in range(min(LONGEST, end) + 1) if items[end - same : end] == items[len(items) - same :]),
            end,
        )
        for end in range(1, len(items))
    ]
    wanted = sorted(((alike, end) for alike, end in slow if alike >= SHORTEST), reverse=True)
    assert found == [(alike, items[end : end + AHEAD]) for alike, end in wanted]
