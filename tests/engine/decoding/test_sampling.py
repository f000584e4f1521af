"""Each policy by itself, on numbers that can be checked by hand."""

import math

import pytest
import torch

from engine.decoding.sampling import (
    StepInfo,
    all_known,
    all_sure,
    begin_with,
    distributions,
    doubtful,
    draw,
    entropy_bound,
    forbid,
    forbid_in,
    in_turn,
    likeliest_in_first,
    linear_temperature,
    nucleus,
    stable_and_confident,
)
from engine.models.vocabulary import Vocabulary


def tokens(*spelled: str) -> Vocabulary:
    return Vocabulary([text.encode() for text in spelled])


def accepted(entropies: list[float], bound: float, *, open_: list[int] | None = None, **options) -> list[int]:
    candidates = torch.zeros(1, len(entropies), dtype=torch.bool)
    candidates[0, range(len(entropies)) if open_ is None else open_] = True
    left = options.pop("left", 10)
    taken = entropy_bound(bound, **options)(torch.tensor([entropies]), candidates, left)
    return taken[0].nonzero()[:, 0].tolist()


def test_the_bound_is_on_the_sum_before_a_position():
    assert accepted([0.05, 0.5, 0.04, 0.02], 0.1) == [0, 2, 3]
    assert accepted([0.05, 0.5, 0.04, 0.02], 0.12) == [0, 1, 2, 3], "0.11 lies before the last"


def test_the_surest_position_is_always_taken():
    assert accepted([3.0, 2.0, 4.0], 0.1) == [1]


def test_only_candidates_are_taken():
    assert accepted([0.0, 2.0, 0.2], 0.1, open_=[1, 2]) == [2]
    assert accepted([0.0, 2.0, 0.01], 0.1, open_=[]) == []


def test_a_canvas_that_must_end_in_time_takes_more_towards_the_end():
    unsure = [5.0, 4.0, 3.0, 2.0]
    assert accepted(unsure, 0.1, in_time=True, left=4) == [3]
    assert accepted(unsure, 0.1, in_time=True, left=2) == [2, 3]
    assert accepted(unsure, 0.1, in_time=True, left=1) == [0, 1, 2, 3]


def test_temperature_falls_linearly():
    temperature = linear_temperature(0.4, 0.8, 4)
    assert [round(temperature(left), 3) for left in (4, 3, 2, 1)] == [0.8, 0.7, 0.6, 0.5]


def look(entropy, free, unchanged=0, known=None, confidence=None):
    return StepInfo(
        entropy=torch.tensor([entropy]),
        free=torch.tensor([free]),
        known=torch.tensor([known or [False] * len(free)]),
        confidence=torch.tensor([confidence or [0.0] * len(free)]),
        unchanged=torch.tensor([unchanged]),
    )


@pytest.mark.parametrize(
    ("entropy", "free", "unchanged", "done"),
    [
        ([0.001, 0.002], [True, True], 2, True),
        ([0.001, 0.002], [True, True], 3, True),
        ([0.001, 0.002], [True, True], 1, False),
        ([0.001, 0.2], [True, True], 2, False),
        # Ten pinned positions would hide one unsure token if they counted.
        ([0.02] + [0.0] * 10, [True] + [False] * 10, 2, False),
    ],
)
def test_stable_and_confident(entropy, free, unchanged, done):
    assert stable_and_confident(2, 0.005)(look(entropy, free, unchanged)).item() is done


def test_absorbing_canvases_are_done_when_nothing_is_unknown():
    assert all_known(look([0.0, 9.0], [True, True], known=[True, True])).item()


def test_forbidden_tokens_have_no_probability():
    logits = forbid([1, 3])(torch.zeros(2, 4), torch.tensor([[0, 0], [0, 1]]))
    assert logits.softmax(-1).tolist() == [[0.5, 0, 0.5, 0]] * 2


def test_a_token_is_forbidden_in_the_rows_that_are_named():
    places = torch.tensor([[0, 0], [1, 0], [1, 3], [2, 1]])
    logits = forbid_in([1], 2)(torch.zeros(4, 4), places)
    assert logits[:, 2].isinf().tolist() == [False, True, True, False]
    assert logits[:, [0, 1, 3]].isfinite().all()
    assert forbid_in([], 2)(torch.zeros(4, 4), places).isfinite().all()


def spelled(head: str, letters: Vocabulary, wishes: list[int], *, one_line: bool = False) -> list[str]:
    """The likeliest token of each position of one row, where `wishes` are likeliest without a head."""
    logits = torch.zeros(len(wishes), letters.size)
    logits[range(len(wishes)), wishes] = 5.0
    places = torch.tensor([[0, at] for at in range(len(wishes))])
    chosen = begin_with(head, letters, one_line=one_line)(logits, places).argmax(-1).tolist()
    return [letters.bytes[token].decode() for token in chosen]


def test_a_head_may_be_part_of_a_longer_token():
    assert spelled("con", tokens("con", "config", "x", "c"), [1, 2]) == ["config", "x"]


def test_a_head_may_take_several_tokens():
    assert spelled("con", tokens("c", "on", "o", "n", "x"), [0, 4, 4])[:2] == ["c", "on"]


def test_what_does_not_agree_with_the_head_is_out():
    assert spelled("con", tokens("x", "con", "cat"), [0, 0]) == ["con", "x"]


def test_a_head_that_is_a_line_break_may_stand_where_one_line_is_wanted():
    letters = tokens("x", "\n", "\n\n", "\n  ", "y\nz")
    assert spelled("\n", letters, [2, 2], one_line=True) == ["\n", "x"]
    assert spelled("\n", letters, [3, 4], one_line=True) == ["\n  ", "x"]
    assert spelled("\n", letters, [2, 4]) == ["\n\n", "y\nz"]
    assert spelled("x", letters, [4, 1], one_line=True) == ["x", "x"]


def test_heads_and_bans_combine():
    both = in_turn(forbid([1]), begin_with("ab", tokens("ab", "abc", "z")))
    assert both(torch.zeros(1, 3), torch.tensor([[0, 0]])).argmax(-1).tolist() == [0]


def test_tokens_are_drawn_as_often_as_they_are_likely_and_impossible_ones_never():
    wanted = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    tokens = draw(
        distributions(wanted.log().expand(20_000, -1)), torch.zeros(20_000, 2), torch.Generator().manual_seed(0)
    )
    shares = tokens.bincount(minlength=6) / 20_000
    assert (shares - wanted).abs().max() < 0.015
    assert set(tokens.tolist()) == {1, 3, 4}


def test_the_first_rows_take_the_likeliest_token():
    likely = torch.tensor([[0.3, 0.7]] * 100).log()
    places = torch.tensor([[0, 0]] * 50 + [[1, 0]] * 50)
    tokens = likeliest_in_first(1)(distributions(likely), places, torch.Generator().manual_seed(0))
    assert set(tokens[:50].tolist()) == {1}
    assert set(tokens[50:].tolist()) == {0, 1}


def test_a_nucleus_holds_the_likeliest_tokens_and_no_others():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().repeat(400, 1)
    places = torch.zeros(400, 2, dtype=torch.int64)

    def drawn(top_p: float) -> set[int]:
        return set(nucleus(top_p)(distributions(logits), places, torch.Generator().manual_seed(0)).tolist())

    assert [drawn(top_p) for top_p in (0.1, 0.49, 0.6, 0.9, 1.0)] == [{0}, {0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}]


def test_only_what_was_accepted_is_doubted():
    confidence = torch.tensor([[0.1, 0.1, 0.9]])
    accepted = torch.tensor([[True, False, True]])
    assert doubtful(0.5)(confidence, accepted).tolist() == [[True, False, False]]


def test_one_look_says_what_is_likely_and_how_unsure_it_is():
    logits = torch.tensor([[0.0, 2.0, -torch.inf, 2.0], [1.0, 1.0, 1.0, 1.0]])
    said = distributions(logits)
    assert said.likeliest.tolist() == [1, 0]
    torch.testing.assert_close(said.probabilities, logits.softmax(-1))
    torch.testing.assert_close(said.entropy(), torch.distributions.Categorical(logits=logits).entropy())
    assert said[torch.tensor([False, True])].entropy().item() == pytest.approx(math.log(4))


@pytest.mark.parametrize(
    ("known", "confidence", "done"),
    [([False, False], [0.9, 0.95], True), ([False, False], [0.95, 0.89], False), ([False, True], [0.95, 0.1], True)],
)
def test_a_canvas_is_done_when_every_open_token_is_sure(known, confidence, done):
    assert all_sure(look([1.0, 1.0], [True, True], known=known, confidence=confidence), 0.9).item() is done
