"""The debounce costs nothing at rest and saves work in a burst."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.suggest.in_flight import BURST_GAP_MS, Debounce


def typed(gaps_ms: list[float], *, answer_ms: float, max_delay_ms: float = 150) -> tuple[Debounce, float]:
    debounce, now_ms = Debounce(max_delay_ms), 1000.0
    debounce.answered(answer_ms)
    debounce.key(now_ms)
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        debounce.key(now_ms)
    return debounce, now_ms


def test_the_first_key_after_a_rest_is_not_delayed():
    debounce, now_ms = typed([80, 80, 80, BURST_GAP_MS + 1], answer_ms=500)
    assert debounce.delay_ms(now_ms) == 0


def test_a_burst_that_outruns_the_answer_is_waited_out():
    debounce, now_ms = typed([80, 80, 80], answer_ms=500)
    assert debounce.delay_ms(now_ms) == pytest.approx(100)


def test_an_answer_faster_than_the_typing_is_asked_for_at_once():
    debounce, now_ms = typed([80, 80, 80], answer_ms=20)
    assert debounce.delay_ms(now_ms) == 0


def test_time_that_passed_since_the_key_counts():
    debounce, now_ms = typed([80, 80, 80], answer_ms=500)
    assert debounce.delay_ms(now_ms + 70) == pytest.approx(30)
    assert debounce.delay_ms(now_ms + 200) == 0


def test_work_given_up_early_does_not_make_the_model_look_fast():
    debounce, now_ms = typed([80, 80, 80], answer_ms=500)
    for _ in range(20):
        debounce.gave_up(10)
    assert debounce.delay_ms(now_ms) == pytest.approx(100)


def test_work_given_up_late_shows_that_the_model_is_slow():
    debounce, now_ms = typed([80, 80, 80], answer_ms=20)
    debounce.gave_up(400)
    assert debounce.delay_ms(now_ms) == pytest.approx(100)


def test_before_anything_is_known_nothing_is_delayed():
    assert Debounce(150).delay_ms(0) == 0


@given(st.lists(st.floats(0, 5000)), st.floats(0, 5000), st.floats(0, 300))
def test_the_delay_stays_within_its_limit(gaps_ms, answer_ms, max_delay_ms):
    debounce, now_ms = typed(gaps_ms, answer_ms=answer_ms, max_delay_ms=max_delay_ms)
    assert 0 <= debounce.delay_ms(now_ms) <= max_delay_ms
