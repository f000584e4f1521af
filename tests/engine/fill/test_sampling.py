"""Each policy by itself, on numbers that can be checked by hand."""

import pytest
import torch

from engine.fill.sampling import (
    StepInfo,
    all_known,
    all_sure,
    doubtful,
    entropy_bound,
    linear_temperature,
    stable_and_confident,
)


def accepted(entropies: list[float], bound: float, *, open_: list[int] | None = None, **options) -> list[int]:
    candidates = torch.zeros(1, len(entropies), dtype=torch.bool)
    candidates[0, range(len(entropies)) if open_ is None else open_] = True
    left = options.pop("left", 10)
    accepted = entropy_bound(bound, **options)(torch.tensor([entropies]), candidates, left)
    return accepted[0].nonzero()[:, 0].tolist()


def test_the_bound_is_on_the_sum_before_a_position():
    assert accepted([0.05, 0.5, 0.04, 0.02], 0.1) == [0, 2, 3]
    assert accepted([0.05, 0.5, 0.04, 0.02], 0.12) == [0, 1, 2, 3], "0.11 lies before the last"


def test_the_surest_position_is_always_accepted():
    assert accepted([3.0, 2.0, 4.0], 0.1) == [1]


def test_only_candidates_are_accepted():
    assert accepted([0.0, 2.0, 0.2], 0.1, open_=[1, 2]) == [2]
    assert accepted([0.0, 2.0, 0.01], 0.1, open_=[]) == []


def test_a_canvas_that_must_end_in_time_takes_more_towards_the_end():
    unsure = [5.0, 4.0, 3.0, 2.0]
    assert accepted(unsure, 0.1, in_time=True, left=4) == [3]
    assert accepted(unsure, 0.1, in_time=True, left=2) == [2, 3]
    assert accepted(unsure, 0.1, in_time=True, left=1) == [0, 1, 2, 3]


def test_from_the_left_nothing_is_accepted_before_what_stands_before_it():
    assert accepted([0.05, 0.5, 0.04, 0.02], 0.1, from_left=True) == [0, 1]
    assert accepted([3.0, 0.0, 0.0], 0.1, from_left=True) == [0]
    assert accepted([3.0, 0.02, 0.05, 0.5, 0.0], 0.1, open_=[1, 2, 4], from_left=True) == [1, 2, 4]
    assert accepted([5.0, 4.0, 3.0, 2.0], 0.1, from_left=True, in_time=True, left=2) == [0, 1]


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


def test_only_what_was_accepted_is_doubted():
    confidence = torch.tensor([[0.1, 0.1, 0.9]])
    accepted = torch.tensor([[True, False, True]])
    assert doubtful(0.5)(confidence, accepted).tolist() == [[True, False, False]]


@pytest.mark.parametrize(
    ("known", "confidence", "done"),
    [([False, False], [0.9, 0.95], True), ([False, False], [0.95, 0.89], False), ([False, True], [0.95, 0.1], True)],
)
def test_a_canvas_is_done_when_every_open_token_is_sure(known, confidence, done):
    assert all_sure(look([1.0, 1.0], [True, True], known=known, confidence=confidence), 0.9).item() is done
