"""Widths that the model names: several are begun, the best of them go on."""

import pytest
import torch

from engine.common.request import FillRequest
from engine.fill.lengths.strategies import KEPT, PREDICTED
from engine.fill.loading import load
from engine.fill.pipeline import fill
from engine.fill.sampling import Race, StepInfo
from engine.models.base import Model, Rows

PREFIX, SUFFIX = "def area(width, height):\n    return ", "\n\n\nprint(area(2, 3))\n"


def info(confidence: list[list[float]], free: list[list[bool]]) -> StepInfo:
    shape = torch.tensor(free)
    return StepInfo(
        entropy=torch.zeros(shape.shape),
        free=shape,
        known=~shape,
        confidence=torch.tensor(confidence),
        unchanged=torch.zeros(len(free)),
    )


def test_what_is_sure_and_likely_to_be_as_wide_goes_on():
    race = Race(2, [-1.0, -1.0, -9.0, -1.0])
    free = [[True, True]] * 4
    lost = race.lost(info([[0.9, 0.9], [0.1, 0.1], [0.9, 0.9], [0.5, 0.5]], free))
    assert (lost.tolist(), race.rows) == ([False, True, True, False], [0, 3])
    # What lost is out for good, however sure the others are later.
    assert race.lost(info([[0.1, 0.1], [1.0, 1.0], [1.0, 1.0], [0.1, 0.1]], free)).tolist() == lost.tolist()


def test_what_was_there_before_counts_for_nothing():
    race = Race(1, [0.0, 0.0])
    race.lost(info([[1e-9, 0.9], [0.5, 0.5]], [[False, True], [True, True]]))
    assert race.rows == [0]


def test_few_rows_all_go_on():
    race = Race(4, [0.0] * 3)
    assert not race.lost(info([[0.1]] * 3, [[True]] * 3)).any()
    assert race.rows == [0, 1, 2]


@pytest.fixture(scope="module")
def bundled() -> Model:
    return load("bundled", "cpu").model


@pytest.mark.parametrize(
    ("n", "begun", "least", "most"), [(1, PREDICTED, 1, KEPT), (PREDICTED + 1, PREDICTED + 1, KEPT + 1, PREDICTED + 1)]
)
def test_a_first_step_chooses(
    bundled: Model, monkeypatch: pytest.MonkeyPatch, n: int, begun: int, least: int, most: int
):
    step, seen = bundled.step, list[int]()

    def counted(rows: Rows):
        seen.append(len(rows.lengths))
        return step(rows)

    monkeypatch.setattr(bundled, "step", counted)
    filled = fill(bundled, FillRequest(prefix=PREFIX, suffix=SUFFIX, language="python", n=n))
    assert filled.candidates
    assert seen[0] == begun
    # Rows that are done go no further, either.
    assert least <= seen[1] <= most
