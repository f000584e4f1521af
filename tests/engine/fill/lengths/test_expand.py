"""A gap that grows and shrinks by the model's own requests."""

from __future__ import annotations

import pytest
import torch

from engine.fill.canvas import new_canvas, rearranged
from engine.fill.lengths.expand import near
from engine.models.base import Noise
from tests.engine.ruler import Ruler
from tests.engine.tiny import Nowhere

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def text_of(tokens: int) -> str:
    """Words of one letter and no space are tokens each."""
    return "x = ▮" + "+".join(LETTERS)[:tokens] + "▮;\n"


@pytest.mark.parametrize("tokens", [1, 2, 7, 8, 9, 20, 40])
def test_any_width_is_found_from_any_start(tokens: int):
    for start in (1, 8, 64):
        model = Ruler(text_of(tokens), length="expand", widths=(start,))
        filled = model.fill()
        assert filled.candidates[0].text == "+".join(LETTERS)[:tokens]
        assert filled.width == tokens
        assert model.widths[0] == start


def test_what_is_given_up_sweeps_the_masks_behind_it():
    model = Ruler(text_of(3), length="expand", widths=(40,))
    assert model.fill().forwards == 4, "three tokens and one request, not 37"


def test_several_requests_are_met_in_a_step_only_where_they_are_independent():
    """All masks of a fresh gap ask at once: one of them gets its slots."""
    model = Ruler(text_of(6), length="expand", widths=(4,), entropy_bound=1e9)
    model.insatiable = True
    model.fill(max_tokens=7)
    assert model.widths == [4, 5, 6, 7]


def test_a_gap_that_asks_for_ever_ends_at_its_limit_without_a_request_in_it():
    model = Ruler(text_of(6), length="expand", widths=(4,))
    model.insatiable = True
    filled = model.fill(max_tokens=9)
    assert max(model.widths) == 9
    assert (filled.width, filled.candidates[0].tokens) == (9, 9)


def test_an_answer_longer_than_allowed_ends():
    assert Ruler(text_of(20), length="expand", widths=(4,)).fill(max_tokens=5).width == 5


def test_every_candidate_finds_its_own_width():
    filled = Ruler(text_of(9), length="expand", widths=(3,)).fill(n=3)
    assert filled.candidates[0].text == "+".join(LETTERS)[:9]


def test_what_is_there_when_time_is_up_holds_no_requests():
    model = Ruler(text_of(20), length="expand", widths=(4,))
    filled = model.fill(deadline_ms=0.001)
    assert model.widths == [4]
    assert all(candidate.tokens < 4 for candidate in filled.candidates)


def test_a_rearranged_canvas_takes_over_what_stood_there():
    noise, generator = Noise(mask_id=9, vocab_size=10), torch.Generator()
    canvas = new_canvas([Nowhere()] * 2, [[None, None, 5], [None, 6]], noise, generator)
    canvas.ids[0, 1] = canvas.best[0, 1] = 3
    canvas.known[0, 1], canvas.open[0, 1], canvas.confidence[0, 1] = True, False, 0.5
    changed = rearranged(canvas, [[None, None, 1, 2], [1]], noise, generator)
    assert changed.ids.tolist() == [[9, 9, 3, 5], [6, 0, 0, 0]]
    assert changed.open.tolist() == [[True, True, False, False], [False] * 4]
    assert changed.known.tolist() == [[False, False, True, True], [True] * 4]
    assert changed.pinned.tolist() == [[False, False, False, True], [True] * 4]
    assert changed.confidence.tolist() == [[0, 0, 0.5, 1], [1, 1, 1, 1]]
    assert list(changed.lengths) == [4, 1]


def test_every_width_that_is_begun_with_has_a_row_of_its_own():
    model = Ruler(text_of(9), length="expand", widths=(3, 20))
    filled = model.fill()
    assert filled.candidates[0].text == "+".join(LETTERS)[:9]
    assert model.widths[0] == 3


def test_requests_before_text_end_in_a_gap_that_is_filled_anew_near_the_width_they_found():
    model = Ruler(text_of(9), length="expand", widths=(3,), requests_first=True)
    assert model.fill().candidates[0].text == "+".join(LETTERS)[:9]
    found = model.widths.index(9)
    assert model.widths[:found] == [3, 4, 5, 6, 7, 8]
    assert near([9, 4], 10) == [9, 4, 7, 2, 8, 3, 10, 5, 6]
    assert near([1], 2) == [1, 2]
