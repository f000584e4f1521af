"""Drafts with shared beginnings, and how far a model says what they say."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.fill.draft_tree import LEAST, ROOT, TokenDraft, accepted, likeliest, likeliest_end, of_drafts, tree_of
from engine.models.base import DraftTree

tokens = st.integers(0, 3)
texts = st.lists(tokens, max_size=10)
drafts = st.lists(st.builds(TokenDraft, ids=texts, likely=st.sampled_from([0.2, 0.5, 0.9])), max_size=6)


def paths(tree: DraftTree) -> list[tuple[int, ...]]:
    """What leads to each of its tokens, itself included."""
    found: list[tuple[int, ...]] = []
    for token, parent in zip(tree.ids, tree.parents, strict=True):
        found.append((*(found[parent] if parent != ROOT else ()), token))
    return found


@given(drafts, texts, st.integers(1, 16))
def test_a_tree_has_beginnings_of_drafts_each_once_and_no_more_rows_than_it_may(
    drafts: list[TokenDraft], known: list[int], rows: int
):
    tree, _ = tree_of(of_drafts(drafts), known, rows)
    assert len(tree.ids) <= max(rows, len(known))
    assert all(parent < at for at, parent in enumerate(tree.parents))
    found = paths(tree)
    assert len(set(found)) == len(found)
    assert found[: len(known)] == [tuple(known[: at + 1]) for at in range(len(known))]
    beginnings = {(*known, *draft.ids[: at + 1]) for draft in drafts for at in range(len(draft.ids))}
    assert {*found[len(known) :]} <= beginnings


@given(st.lists(texts, max_size=4), st.integers(1, 40))
def test_what_is_surer_comes_first(texts: list[list[int]], rows: int):
    sure = TokenDraft(ids=[9, 9, 9], likely=0.95)
    tree, _ = tree_of(of_drafts([*(TokenDraft(ids=text, likely=0.3) for text in texts), sure]), rows=rows)
    assert paths(tree)[:3] == [(9,), (9, 9), (9, 9, 9)][:rows]


@pytest.mark.parametrize(("share", "rows"), [(0.03, 4), (0.1, 2), (1.0, 1)])
def test_a_token_that_hardly_comes_is_not_worth_its_row(share: float, rows: int):
    following = of_drafts([TokenDraft(ids=[1] * 10, likely=0.5)])  # 0.5, 0.25, 0.125, ...

    def rate(count: int) -> float:
        return (2 - 0.5**count) / (1 + share * (count - 1))

    tree, _ = tree_of(following, cost=lambda count: 1 + share * (count - 1))
    assert len(tree.ids) == max(range(1, 8), key=rate) == rows


def test_rows_that_cost_nothing_are_used():
    """A processor multiplies eight rows in the time of one."""
    tree, _ = tree_of(of_drafts([TokenDraft(ids=[1] * 10, likely=0.6)]), cost=lambda rows: 1.0 if rows <= 8 else 9.0)
    assert len(tree.ids) == 7  # the next is likelier not to be said than LEAST
    assert 0.6**8 < LEAST < 0.6**7


def test_what_is_likely_goes_on_as_long_as_it_is():
    sure, unsure = TokenDraft(ids=[4, 5, 6], likely=0.6), TokenDraft(ids=[4, 7], likely=0.4)
    assert likeliest(of_drafts([sure, unsure])) == [4, 5, 6]
    assert likeliest(of_drafts([unsure])) == []


@given(drafts, texts, texts)
def test_what_is_accepted_is_what_is_said_and_the_next_token_is_free(
    drafts: list[TokenDraft], known: list[int], wanted: list[int]
):
    tree, _ = tree_of(of_drafts(drafts), known)
    said: list[int] = []

    def choose(at: int) -> int | None:
        assert tuple(known) + tuple(said) == (paths(tree)[at] if at != ROOT else ())
        if len(said) == len(wanted):
            return None
        said.append(wanted[len(said)])
        return said[-1]

    path, token = accepted(tree, len(known), choose)
    assert path == _path(tree, [*known, *said[: len(path) - len(known)]])
    if len(said) == len(wanted) and len(path) - len(known) == len(said):
        assert token is None
    else:
        assert [tree.ids[at] for at in path[len(known) :]] == said[:-1]
        assert token == said[-1]
        assert (*known, *said) not in paths(tree)


def _path(tree: DraftTree, text: Sequence[int]) -> list[int]:
    found = paths(tree)
    return [found.index(tuple(text[: at + 1])) for at in range(len(text))]


def test_acceptance_ends_most_likely_where_no_draft_goes_on():
    tree = DraftTree(ids=(1, 2, 3), parents=(ROOT, 0, ROOT))
    assert likeliest_end(tree, [0.5, 0.45, 0.2]) == (1, 0.45)
    assert likeliest_end(tree, [0.2, 0.1, 0.1]) == (ROOT, pytest.approx(0.7))
