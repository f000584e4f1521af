"""The benchmark on the family that keeps no contexts and predicts no next tokens."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from dg_lsp.cli import run as command
from engine.common.errors import BadInput, ModelError
from engine.fill.loading import load
from engine.fill.pipeline import fill
from engine.lab.baselines.reference import generates, reference
from engine.lab.bench.families import random_model
from engine.lab.bench.fills import end_to_end
from engine.lab.bench.steps import bounds, flops, grid, keystroke, products, run_all, step_kinds
from engine.lab.bench.timing import Stopwatch
from engine.lab.bench.workload import Measured, request_for, token_ids
from engine.models.masked.model import Masked
from engine.models.network import Activation, feed_forward
from tests.engine.toy_gaps import toy_gaps

TOY = Path(__file__).parents[3] / "models" / "toy-masked"
WATCH = Stopwatch(repetitions=2, limit_s=0.1)
CONTEXT, OPEN, PINNED = 40, 4, 20


@pytest.fixture(scope="module")
def small() -> Masked:
    model = random_model("masked-small", "cpu")
    assert isinstance(model, Masked)
    model.info = dataclasses.replace(model.info, context_limit=500)
    return model


def test_it_can_be_measured_but_reads_no_way_but_its_own(small: Masked):
    assert isinstance(small, Measured)
    assert small.left_to_right is None
    assert not generates(small)


def test_the_products_are_those_of_each_kind_of_step(small: Masked):
    full, reused = step_kinds(small, [20] * CONTEXT, gap=OPEN, pinned=PINNED, batch=2)
    held, config = small.network, small.network.config
    for kind, length in ((full, CONTEXT + OPEN + PINNED), (reused, 1 + OPEN + 8)):
        found = products(kind)
        if kind.before:
            kind.before()
        step, alone = flops(kind.run), flops(lambda found=found: run_all(found))
        # Those with a bias are counted apart.
        with_weights = ("aten.mm", "aten.addmm", "mkldnn._linear_pointwise")
        of_step, of_products = (sum(count.get(name, 0) for name in with_weights) for count in (step, alone))
        assert of_products == of_step > 0
        # In the last layer the open positions ask.
        seen, queries = CONTEXT + OPEN + PINNED, length * (len(held.layers) - 1) + OPEN
        attention = 2 * 2 * 2 * config.heads * config.head_size * queries * seen
        assert alone["aten.bmm"] == attention


def test_each_kind_of_step_can_be_repeated(small: Masked):
    full, reused = step_kinds(small, token_ids(small, CONTEXT), gap=OPEN, pinned=PINNED)
    logits: list[Any] = []
    for _ in range(6):
        assert reused.before
        reused.before()
        logits.append(reused.run())
    assert all(torch.equal(logits[0], each) for each in logits)
    # What is around the gap saw the same masks as now, so nothing is lost.
    torch.testing.assert_close(full.run(), logits[0], rtol=1e-3, atol=1e-3)
    assert small.remembers


def test_a_step_that_reuses_nothing_has_one_kind(small: Masked):
    assert [kind.name for kind in step_kinds(small, [20], gap=8, pinned=1)] == ["step in full"]


def test_ways_of_a_step_are_held_against_each_other(small: Masked):
    figures, ratios = bounds(small, WATCH, gap=8)
    medians = {figure.name: figure.spread.median for figure in figures}
    full, reused = "step in full", "step that remembers its surroundings"
    assert {full, reused, f"{full}: matrix products alone", f"{reused}: matrix products alone"} <= medians.keys()
    assert ratios[-1].name == f"{full} by {reused}"
    assert ratios[-1].value == medians[full] / medians[reused]
    assert {(each.name, each.at, each.batch) for each in grid(small, WATCH, (16,), (1, 2))[0]} == {
        (name, 16, batch) for name in (full, reused) for batch in (1, 2)
    }


def test_keystrokes_end_where_the_model_can_read_no_more(small: Masked):
    figures, ratios = keystroke(small, WATCH, (64, 4096, 32768), longest_cold=64)
    longest = small.info.context_limit - 24 - 32 - 6
    assert {figure.at for figure in figures} == {64, longest}
    assert ratios[0].name == f"warm keystroke at {longest} by 64 tokens"


def test_the_published_loop_takes_a_token_a_step_and_computes_everything(
    small: Masked, monkeypatch: pytest.MonkeyPatch
):
    request = replace(request_for(small, 5), prefix="20 21 22 23", suffix="24 25 26 27")
    passes: list[int] = []

    def counted(block: Any, hidden: Tensor, activation: Activation) -> Tensor:
        if block is small.network.layers[0].mlp:
            passes.append(hidden.shape[1])
        return feed_forward(block, hidden, activation)

    monkeypatch.setattr("engine.models.masked.network.feed_forward", counted)
    reference(small, request, fill(small, request)).run()
    assert passes[-5:] == [4 + 5 + 4] * 5


def test_the_published_loop_knows_the_toy_language():
    infiller = load(str(TOY), "cpu")
    model = infiller.model
    assert isinstance(model, Masked)
    right = 0
    for gap in toy_gaps(infiller, 4, seed=2, longest=12):
        request = replace(
            request_for(model, len(model.tokenize(gap.answer))), prefix=gap.prefix, suffix=gap.suffix, language="python"
        )
        said: Any = reference(model, request, fill(model, request)).run()
        right += model.detokenize(said) == gap.answer
    assert right >= 3


def test_a_gap_end_to_end_stands_beside_the_published_loop(small: Masked):
    figures, (ratio,) = end_to_end(small, WATCH, (3,))
    names = [figure.name for figure in figures]
    assert names == ["fill, cold cache", "published loop, 3 steps, cold cache", "fill, warm cache"]
    assert ratio.value == figures[1].spread.median / figures[0].spread.median


@pytest.mark.parametrize("shape", ["dream-layers=0", "dcoder-layers=25", "dream-layers=", "dreamon=1", "dream"])
def test_an_unknown_shape_is_named(shape: str):
    with pytest.raises(BadInput, match="There is no shape"):
        random_model(shape, "cpu")


def test_a_slice_of_a_released_shape(monkeypatch: pytest.MonkeyPatch):
    model = random_model("dcoder-layers=1", "cpu")
    assert isinstance(model, Masked)
    assert model.network.config.hidden == 896
    assert len(model.network.layers) == 1
    assert model.info.parameters == sum(parameter.numel() for parameter in model.network.module.parameters())
    held = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: held._replace(available=1 << 30))
    with pytest.raises(ModelError, match=r"needs 14\.2 GiB, but 1\.0 GiB of main memory are free"):
        random_model("dreamon", "cpu")


def test_trained_models_of_both_families_are_measured_by_the_command(capsys: pytest.CaptureFixture[str]):
    parts = ["--part", "end to end", "--part", "step", "--part", "keystroke", "--part", "widths and batches"]
    for name in ("toy-masked", "toy-uniform"):
        assert (
            command(["bench", "--model", str(TOY.with_name(name)), "--device", "cpu", "--quick", "--json", *parts]) == 0
        )
        told = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert {figure["part"] for figure in told["figures"]} == set(parts[1::2])
        ratios = {ratio["name"].partition(" by fill")[0].partition(",")[0] for ratio in told["ratios"]}
        assert ("published loop" if name == "toy-masked" else "generate") in ratios


def test_what_has_no_weights_is_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    oracle = tmp_path / "oracle.json"
    oracle.write_text(json.dumps({"cases": [{"text": "a▮b▮c"}]}))
    assert command(["bench", "--model", f"oracle:{oracle}"]) == 2
    assert "no weights to measure" in capsys.readouterr().err
