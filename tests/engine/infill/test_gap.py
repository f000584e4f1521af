"""A gap while it is filled."""

from engine.infill.gap import CLEARLY, steady


def test_drafts_stay_with_their_row_until_another_is_clearly_surer():
    assert steady(1, [0.5, 0.45, 0.3]) == 1
    assert steady(1, [0.5, 0.5 - CLEARLY, 0.3]) == 0


def test_rows_may_have_gone():
    assert steady(2, [0.2, 0.3]) == 1
