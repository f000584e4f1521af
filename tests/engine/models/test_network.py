"""What the families' networks share."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.common.names import BUNDLED
from engine.common.request import FillRequest
from engine.fill.loading import load
from engine.fill.pipeline import fill
from tests.engine.formats import NEEDS_INT8, choose

MODELS = Path(__file__).parents[2] / "models"
REQUEST = FillRequest(prefix="let a = 3\nlet b = ", suffix="\nprint a\n", width=6)


@pytest.mark.parametrize("name", ["toy-uniform", "toy-absorbing", "toy-masked"])
def test_keys_and_values_are_kept_in_the_format_of_the_weights(name: str, monkeypatch: pytest.MonkeyPatch):
    said: list[list[float]] = []
    nbytes: list[int] = []
    for narrow in (True, False):
        choose(monkeypatch, bfloat16=True, attention=narrow)
        model: Any = load(str(MODELS / name), "cpu").model
        network = model.network
        assert network.attends_in == (torch.bfloat16 if narrow else None)
        prompt = model.prompt(REQUEST)
        context = model.encode(prompt.context)
        said += model.score(context, [model.tokenize("a + 1")], prompt.suffix)
        if name != "toy-masked":
            assert context.store.read(0, 1)[0].dtype == (torch.bfloat16 if narrow else torch.float32)
        nbytes.append(network.token_nbytes)
        assert fill(model, REQUEST).candidates
    assert said[0] == pytest.approx(said[1], abs=0.2)
    assert nbytes[1] == 2 * nbytes[0]


def test_what_is_not_multiplied_in_bfloat16_is_kept_as_it_is(monkeypatch: pytest.MonkeyPatch):
    choose(monkeypatch, ordered_float32=True, attention=True)
    model: Any = load(str(MODELS / "toy-uniform"), "cpu").model
    assert model.network.attends_in is None


@NEEDS_INT8
def test_without_units_for_bfloat16_the_bundled_model_scores_alike_in_8_bits(monkeypatch: pytest.MonkeyPatch):
    request = FillRequest(
        prefix="def total(values):\n    return ", suffix="\n\n\nprint(total([1, 2]))\n", language="python"
    )
    said: list[list[float]] = []
    for which in ({}, {"int8": True}):
        choose(monkeypatch, **which)
        model: Any = load(BUNDLED, "cpu").model
        prompt = model.prompt(request)
        gaps = [model.tokenize(f"{prompt.head}{text}") for text in ("sum(values)", "len(values)", "values[0]")]
        said.append([sum(each) for each in model.score(model.encode(prompt.context), gaps, prompt.suffix)])
        assert fill(model, request).candidates
    assert said[0] != said[1]
    assert said[0] == pytest.approx(said[1], abs=0.5)
