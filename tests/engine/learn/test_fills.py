from dataclasses import replace

import pytest
import torch

from engine.fill.loading import load
from engine.lab.eval.tasks import EvalTask
from engine.learn.export import export
from engine.learn.fills import fill_holes, fitted_threshold
from engine.learn.state import open_state
from engine.models.base import Model
from tests.engine.learn.tiny import tiny, toy_corpus
from tests.engine.toys.language import program

TOKENS = 300
"""Of the toy corpus's tokenizer."""


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Random weights with a hundred rows more than there are tokens."""
    folder = tmp_path_factory.mktemp("roomy")
    recipe = replace(tiny(), shape=replace(tiny().shape, vocab=TOKENS + 100))
    export(open_state(recipe, folder, 0, torch.device("cpu")), recipe, toy_corpus() / "tokenizer", folder / "model")
    return load(str(folder / "model"), "cpu").model


def test_rows_without_a_token_never_enter_a_gap(roomy: Model):
    assert set(roomy.info.forbidden_ids) >= {*range(TOKENS, TOKENS + 100)}
    assert roomy.detokenize([TOKENS + 50]) == ""


def test_holes_are_filled_by_canvas_and_causal_head(roomy: Model):
    text = program("+ 2", 0, 4)
    tasks = [
        EvalTask(
            name=str(at),
            kind="line",
            language="python",
            prefix=text[:at],
            suffix=text[at + 5 :],
            truth=text[at : at + 5],
        )
        for at in (40, 80, 120)
    ]
    fills = fill_holes(roomy, tasks)
    assert fills == fill_holes(roomy, tasks)
    assert (fills.holes, fills.canvas, fills.causal, fills.adaptive) == (3, 0, 0, 0), "random weights know nothing"
    assert (fills.threshold, fills.shown) == (1, 0)
    assert "3 development holes" in fills.line()


@pytest.mark.parametrize(
    ("answers", "fitted"),
    [
        ([(0.9, True), (0.8, False), (0.7, True), (0.6, False), (0.5, False)], (0.6, 0.8)),
        ([(0.9, False), (0.8, True), (0.7, False), (-1.0, False)], (0.8, 0.5)),
        ([(0.9, True), (0.5, True), (0.5, False), (0.5, False), (0.5, False), (0.4, True)], (0.4, 1.0)),
        ([(0.9, True), (0.5, False), (0.5, False)], (0.9, 1 / 3)),
        ([(0.9, False), (-1.0, False)], (1.0, 0.0)),
    ],
)
def test_the_lowest_threshold_is_taken_at_which_half_of_what_is_shown_is_exact(
    answers: list[tuple[float, bool]], fitted: tuple[float, float]
):
    assert fitted_threshold(answers) == pytest.approx(fitted)
