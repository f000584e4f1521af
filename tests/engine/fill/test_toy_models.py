"""The real path with real weights: models of a toy language, trained by the recipe, fill gaps with one right answer.

Made with `python -m tests.engine.toys NAME DIR`: toy-absorbing (slack) and toy-uniform (discover).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.fill.loading import Infiller, load
from engine.models.gemma.model import DiffusionGemma
from tests.engine.toy_gaps import exact_share, toy_gaps

MODELS = Path(__file__).parents[2] / "models"


@pytest.fixture(scope="module")
def absorbing() -> Infiller:
    return load(str(MODELS / "toy-absorbing"), "cpu")


@pytest.fixture(scope="module")
def uniform() -> Infiller:
    return load(str(MODELS / "toy-uniform"), "cpu")


def test_discover_finds_width_and_answer(uniform: Infiller):
    assert exact_share(uniform, toy_gaps(uniform, 40, seed=0)) >= 0.9


def test_slack_finds_the_width(absorbing: Infiller):
    assert exact_share(absorbing, toy_gaps(absorbing, 40, seed=0)) >= 0.95


def test_a_row_that_runs_on_finds_ends_that_padding_misses(absorbing: Infiller):
    gaps = toy_gaps(absorbing, 12, seed=4, shortest=20)
    running = exact_share(absorbing, gaps)
    model, facts = absorbing.model, absorbing.model.info
    assert isinstance(model, DiffusionGemma)
    model.info = dataclasses.replace(facts, runs_on=False)
    padding = exact_share(absorbing, gaps)
    model.info = facts
    assert running > padding


def test_a_told_width_is_filled_from_masks(absorbing: Infiller):
    assert exact_share(absorbing, toy_gaps(absorbing, 40, seed=0), widths_known=True) >= 0.95


def test_a_told_width_is_filled_from_random_tokens(uniform: Infiller):
    assert exact_share(uniform, toy_gaps(uniform, 40, seed=0), widths_known=True) >= 0.95


@pytest.mark.parametrize("name", ["toy-absorbing", "toy-uniform"])
def test_they_are_small(name: str):
    assert sum(path.stat().st_size for path in (MODELS / name).iterdir()) < 2_000_000
