"""A gap while it is filled."""

import pytest

from engine.common.request import FillRequest
from engine.fill.gap import CLEARLY, steady
from engine.fill.gap_opening import open_gap
from engine.fill.loading import load
from engine.models.base import Model


@pytest.fixture(scope="module")
def bundled() -> Model:
    return load("bundled", "cpu").model


def test_drafts_stay_with_their_row_until_another_is_clearly_surer():
    assert steady(1, [0.5, 0.45, 0.3]) == 1
    assert steady(1, [0.5, 0.5 - CLEARLY, 0.3]) == 0


def test_rows_may_have_gone():
    assert steady(2, [0.2, 0.3]) == 1


def test_a_draft_shows_what_may_be_the_answer(bundled: Model):
    gap = open_gap(bundled, FillRequest(prefix="x = ", suffix="\n"))
    lost, left = (bundled.tokenize(text) for text in ("lost", "left"))
    canvas = gap.noise_canvas([len(lost), len(left)])
    for row, (ids, sure) in enumerate(((lost, 0.95), (left, 0.6))):
        canvas.ids[row, : len(ids)] = canvas.best[row, : len(ids)] = canvas.best.new_tensor(ids)
        canvas.confidence[row, : len(ids)] = sure
    canvas.known[:] = True
    canvas.open[:] = False
    widths = [len(lost), len(left)]
    assert (both := gap.draft(canvas, widths)).text == "lost"
    assert both.settled == len("l"), "as far as both agree"
    one = gap.draft(canvas, widths, [1])
    assert (one.text, one.settled) == ("left", len("left"))
    assert gap.draft(canvas, widths, [1], looks=True).settled == 0
