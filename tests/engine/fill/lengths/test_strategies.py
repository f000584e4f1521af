"""Where a canvas goes on with the suffix, what a guess does to a first step, and which widths are tried."""

import pytest
import torch

from engine.fill.canvas import Canvas, cat, new_canvas, seed
from engine.fill.lengths.strategies import FLOOR, suffix_places
from engine.models.base import Noise
from engine.models.logits import Head, columns
from tests.engine.tiny import Nowhere

NOISE = Noise(mask_id=None, vocab_size=20)


def canvas(*tokens: int) -> Canvas:
    """Settled: every position says its token."""
    state = new_canvas([Nowhere()], [list(tokens)], NOISE, torch.Generator().manual_seed(0))
    state.open[:] = False
    return state


def test_the_suffix_is_found_where_it_stands():
    places = suffix_places(canvas(5, 6, 7, 1, 2, 3, 9), [1, 2, 3])
    assert places[0] == (3, 0.0)
    assert all(score < 0 for _, score in places[1:])


def test_a_suffix_that_stands_nowhere_is_as_unlikely_as_can_be():
    places = suffix_places(canvas(5, 6, 7, 8), [1, 2])
    assert {score for _, score in places} == {FLOOR}


def test_neighbouring_places_are_not_all_tried():
    widths = [width for width, _ in suffix_places(canvas(*[4] * 10), [4, 4])]
    assert all(abs(a - b) > 1 for a in widths for b in widths if a != b)


def test_without_a_suffix_there_is_no_place_to_find():
    assert suffix_places(canvas(1, 2), []) == []


def test_what_is_still_open_counts_by_its_probability():
    state = canvas(5, 1, 2, 9)
    state.open[0, 1:3] = True
    state.log_queried = torch.full((1, 4, 2), -5.0)
    state.log_queried[0, 1, 0] = state.log_queried[0, 2, 1] = -0.6
    assert suffix_places(state, [1, 2])[0] == (1, pytest.approx(-0.6))


def test_a_guess_conditions_the_first_step_of_its_row_alone():
    table = torch.eye(20)
    head = Head(columns, 20, table)
    state = new_canvas([Nowhere()] * 2, [[None] * 3 + [7], [None] * 2 + [7]], NOISE, torch.Generator())
    seed(state, 1, [11, None, 12], head)
    assert state.signal is not None
    likely = state.signal.embeddings()
    torch.testing.assert_close(likely[[0, 1, 2, 4]], torch.full((4, 20), 1 / 20))
    assert likely[3].argmax() == 11
    assert likely[3, 11] > 0.9


def test_rows_of_two_batches_stand_beside_each_other():
    narrow, wide = canvas(5, 6), canvas(7, 8, 9)
    narrow.pinned[0, 0] = False
    both = cat(narrow, wide)
    assert [both.row(row) for row in range(2)] == [[5, 6], [7, 8, 9]]
    assert both.pinned.tolist() == [[False, True, True], [True] * 3]
    assert not both.open.any()
