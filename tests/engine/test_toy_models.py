"""The real path with real weights: models of a toy language, trained by the recipe, fill gaps with one right answer.

Made with `python -m engine.train toy`, presets toy-absorbing (slack) and toy-uniform (discover).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.loading import Infiller, load
from tests.engine.toy_gaps import exact_share, toy_gaps

MODELS = Path(__file__).parents[1] / "models"


@pytest.fixture(scope="module")
def absorbing() -> Infiller:
    return load(str(MODELS / "toy-absorbing"), "cpu")


@pytest.fixture(scope="module")
def uniform() -> Infiller:
    return load(str(MODELS / "toy-uniform"), "cpu")


def test_discover_finds_width_and_answer(uniform: Infiller):
    assert exact_share(uniform, toy_gaps(uniform, 40, seed=0)) >= 0.9


def test_slack_finds_the_width(absorbing: Infiller):
    assert exact_share(absorbing, toy_gaps(absorbing, 30, seed=0)) >= 0.5


def test_a_told_width_is_filled_from_masks(absorbing: Infiller):
    assert exact_share(absorbing, toy_gaps(absorbing, 30, seed=0), widths_known=True) >= 0.8


def test_a_told_width_is_filled_from_random_tokens(uniform: Infiller):
    assert exact_share(uniform, toy_gaps(uniform, 40, seed=0), widths_known=True) >= 0.95


@pytest.mark.parametrize("name", ["toy-absorbing", "toy-uniform"])
def test_they_are_small(name: str):
    assert sum(path.stat().st_size for path in (MODELS / name).iterdir()) < 2_000_000
