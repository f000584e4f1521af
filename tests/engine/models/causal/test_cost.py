"""What rows cost, as measured."""

from collections.abc import Callable

import pytest

from engine.models.base import linear_cost
from engine.models.causal.cost import LEAST, MOST, measured
from tests.engine.coder import open_model, write_coder


def cost_by(seconds: dict[int, float]) -> Callable[[int], float]:
    now, first = 0.0, set[int]()

    def run(rows: int) -> None:
        nonlocal now
        # The first pass over so many rows takes longer.
        now += seconds[rows] + (5.0 if rows not in first else 0.0)
        first.add(rows)

    return measured(run, lambda: now)


def test_rows_cost_what_was_measured_and_in_between():
    cost = cost_by({1: 0.02, 8: 0.024, 16: 0.032})
    assert [cost(rows) for rows in (1, 8, 16)] == pytest.approx([1, 1.2, 1.6])
    assert cost(12) == pytest.approx(1.4)
    assert cost(24) == pytest.approx(2.0)
    assert cost(0) == 1


@pytest.mark.parametrize(("seconds", "row"), [({1: 0.02, 8: 0.01, 16: 0.001}, LEAST), ({1: 0.02, 8: 1, 16: 9}, MOST)])
def test_what_else_runs_on_the_machine_does_not_decide(seconds: dict[int, float], row: float):
    assert [cost_by(seconds)(rows) for rows in (8, 16)] == pytest.approx([1 + 7 * row, 1 + 15 * row])


def test_a_coder_is_measured_with_nothing_kept_of_it(tmp_path, monkeypatch: pytest.MonkeyPatch):
    model = open_model(write_coder(tmp_path / "coder.gguf"))
    assert model.cost(9) == linear_cost(9)
    passes: list[int] = []
    monkeypatch.setattr("engine.models.causal.model.measured", lambda run: passes.extend(run(4)) or (lambda rows: 7.0))
    model.measure()
    assert passes
    assert model.cost(9) == 7.0
    assert model.cache.nbytes == 0
    assert model.context_tokens == (0, 0)
