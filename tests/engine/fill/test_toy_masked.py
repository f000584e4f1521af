"""The second family's real path with real weights: a masked model of the toy language fills gaps with one right answer.

Made with `python -m tests.engine.toys toy-masked DIR`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from engine.common.request import FillRequest, Task
from engine.fill.executor import drive
from engine.fill.loading import Infiller, load
from engine.fill.pipeline import Parts, infill
from engine.fill.syntax_fix import syntax_fix
from engine.models import kv_cache
from engine.models.masked.model import Masked
from tests.engine.toy_gaps import exact_share, toy_gaps

MODEL = Path(__file__).parents[2] / "models" / "toy-masked"


@pytest.fixture
def masked() -> Infiller:
    return load(str(MODEL), "cpu")


def model_of(masked: Infiller) -> Masked:
    assert isinstance(masked.model, Masked)
    return masked.model


def test_a_gap_grows_and_shrinks_to_its_answer(masked: Infiller):
    assert exact_share(masked, toy_gaps(masked, 12, seed=1)) >= 0.9


def test_a_width_is_seen_at_first_sight(masked: Infiller):
    model = model_of(masked)
    model.info = dataclasses.replace(model.info, length="calibrated", widths=(1, 4, 8, 16, 24, 32, 40))
    assert exact_share(masked, toy_gaps(masked, 6, seed=1)) >= 0.8


def test_a_first_sight_in_parts_finds_the_same_widths_and_answers(masked: Infiller, monkeypatch: pytest.MonkeyPatch):
    model = model_of(masked)
    model.info = dataclasses.replace(model.info, length="calibrated", widths=(1, 4, 8, 16, 24, 32, 40))
    gaps = toy_gaps(masked, 3, seed=2)

    def found() -> list[tuple[int, list[str]]]:
        filled = [masked.fill(gap.prefix, gap.suffix, max_tokens=48, n=3) for gap in gaps]
        return [(each.width, [candidate.text for candidate in each.candidates]) for each in filled]

    at_once = found()
    monkeypatch.setattr(kv_cache, "PASS", 300)
    assert found() == at_once


def test_a_told_width_is_filled(masked: Infiller):
    assert exact_share(masked, toy_gaps(masked, 8, seed=1), widths_known=True) >= 0.9


def test_remembering_the_surroundings_changes_few_answers(masked: Infiller):
    gaps = toy_gaps(masked, 6, seed=3)

    def answers() -> list[str]:
        filled = [masked.fill(gap.prefix, gap.suffix, width=len(masked.model.tokenize(gap.answer))) for gap in gaps]
        return [each.candidates[0].text for each in filled]

    remembered = answers()
    model_of(masked).remembers = False
    assert sum(a == b for a, b in zip(remembered, answers(), strict=True)) >= 5


@pytest.mark.parametrize("task", ["fill", "rewrite", "fix"])
def test_what_a_canvas_held_does_not_enter_scores(masked: Infiller, monkeypatch: pytest.MonkeyPatch, task: Task):
    """In an edit, more than the suffix stands fixed behind the noise."""
    model = model_of(masked)
    model.remembers = False
    scored: list[list[float]] = []

    def score(context: Any, *told: Any) -> list[list[float]]:
        found = Masked.score(model, context, *told)
        assert found == Masked.score(model, model.encode(context.ids), *told)
        scored.extend(found)
        return found

    monkeypatch.setattr(model, "score", score)
    (gap,) = toy_gaps(masked, 1, seed=1, shortest=10, longest=14)
    old = {"fill": "", "rewrite": gap.answer, "fix": gap.answer.replace("\n", ")\n", 1)}[task]
    request = FillRequest(prefix=gap.prefix, old=old, suffix=gap.suffix, language="python", task=task, strength=0.3)
    drive(model, syntax_fix(model, request) if task == "fix" else infill(model, request, parts=Parts(repair=False)))
    assert scored


def test_it_is_small():
    assert sum(path.stat().st_size for path in MODEL.iterdir()) < 2_000_000
