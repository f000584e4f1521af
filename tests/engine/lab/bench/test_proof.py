"""What `make gpu-proof` runs on a GPU, on a tiny model here; its figures are another matter."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.common.errors import BadInput, ModelError
from engine.lab.bench.families import random_model
from engine.lab.bench.fills import end_to_end
from engine.lab.bench.random_models import random_gemma
from engine.lab.bench.timing import Stopwatch
from engine.lab.bench.workload import rows_of, token_ids
from engine.models.gemma.model import DiffusionGemma
from engine.models.masked.model import Masked
from engine.models.quantized.layers import PackedWeights, PlainInt4, PlainNvfp4, WeightFormat
from engine.models.static_steps import StaticSteps
from tests.gpu.__main__ import NO_GPU, end, prove_all, run_tests
from tests.gpu.proof import ProofSize, nbytes_read, prove, table

TINY = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_global_key_value_heads": 1,
    "global_head_dim": 32,
    "num_experts": 4,
    "top_k_experts": 2,
    "moe_intermediate_size": 32,
    "sliding_window": 64,
}
"""The released shape, scaled."""
WATCH = Stopwatch(repetitions=1, limit_s=0.01)
SIZE = ProofSize(positions=(8,), widths=(4,), steps=(2,), lengths=(300, 600), copied=1 << 20)


def tiny(layout: WeightFormat | None) -> DiffusionGemma:
    said: dict[str, Any] = {"model_type": "diffusion_gemma", "canvas_length": 64, "text_config": dict(TINY)}
    return random_gemma("tiny", said, "cpu", 0, layout)


@pytest.mark.parametrize(("layout", "kind"), [("INT4", PlainInt4), ("NVFP4", PlainNvfp4)])
def test_weights_in_4_bit_are_made_where_they_are_used(layout: WeightFormat, kind: type[PackedWeights]):
    model, plain = tiny(layout), tiny(None)
    packed = [name for name, part in model.network.module.named_modules() if isinstance(part, kind)]
    assert sum("experts" in name for name in packed) == 4
    assert any("self_attn" in name for name in packed) == (layout == "INT4")
    assert model.info.parameters == plain.info.parameters
    spreads = []
    for each in (model, plain):
        logits = each.step(rows_of(each, each.encode(token_ids(each, 50)), gap=6, pinned=10, first=True)).whole()
        spreads.append(float(logits.std()))
    assert spreads[0] == pytest.approx(spreads[1], rel=0.2), "random weights are as large"


@pytest.mark.parametrize("layout", ["INT4", "NVFP4"])
def test_all_parts_of_the_proof_are_measured(layout: WeightFormat):
    model = tiny(layout)
    model.static = StaticSteps(model.network, slots=256, context=1024, capture=lambda run: run)
    parts: list[str] = []
    proved = prove(model, WATCH, replace(SIZE, compiled=True), parts.append)
    assert parts == ["steps", "fills", "keystrokes", "a compiled step"]
    assert proved.left_out == {"compiled graph": "AssertionError: only steps on CUDA are captured"}
    assert {(each.part, each.name) for each in proved.figures} >= {
        ("step", "launched"),
        ("step", "graph"),
        ("fill", "greedy"),
        ("fill", "2 steps"),
        ("keystroke", "warm"),
    }
    assert model.static.count > 2
    assert all(each.spread.median > 0 for each in proved.figures)
    assert set(proved.rates) == {"greedy, if it only read its weights", "4 tokens, greedy", "4 tokens, 2 steps"}
    assert 0.5 < proved.nbytes["weights, held"] / proved.nbytes["weights, planned"] <= 1.0
    assert 0 < proved.nbytes["weights read for a token, left to right"] <= proved.nbytes["weights read by a step of 8"]
    assert proved.nbytes["weights read by a step of 8"] <= proved.nbytes["weights, held"]
    # Each of 8 rows meets each weight but the experts that it was not routed to.
    assert proved.products_of[8] > 8 * proved.nbytes["weights read by a step of 8"] / 4
    lines = table([proved]).splitlines()
    assert {line.count("|") for line in lines} == {3}
    assert "| step, graph, at 8 |" in "\n".join(lines)


def test_a_benchmark_of_weights_in_4_bit_does_without_the_published_class():
    figures, _ = end_to_end(tiny("INT4"), WATCH, (4,))
    names = {each.name for each in figures}
    assert {"fill, cold cache", "greedy, warm cache"} <= names
    assert not any("generate" in name for name in names)


def test_what_is_read_is_what_is_touched():
    model = tiny(None)
    module: Any = model.network.module
    first, second = model.network.layers
    read = nbytes_read(module, lambda: first.mlp.up_proj(torch.zeros(1, 64)))
    # Of the piece in which it lies with its sibling, as one product takes both, its own half.
    assert read == first.mlp.up_proj.weight.nbytes
    assert nbytes_read(module, lambda: second.router.proj.weight.t()) == 0


def test_any_shape_may_be_in_4_bit():
    model = random_model("masked-small-int4", "cpu")
    assert isinstance(model, Masked)
    assert any(isinstance(part, PlainInt4) for part in model.network.module.modules())
    with pytest.raises(BadInput, match="-int4 or -nvfp4"):
        random_model("small-int8", "cpu")


def test_what_does_not_fit_is_left_out_with_the_reason(capsys: pytest.CaptureFixture[str]):
    def too_big() -> DiffusionGemma:
        raise ModelError("random released needs 19 GB.")

    def broken() -> DiffusionGemma:
        raise RuntimeError("CUDA error")

    models = {"too big": too_big, "broken": broken, "tiny": lambda: tiny("INT4")}
    proved, left_out = prove_all(models, WATCH, SIZE, time.monotonic() + 60)
    assert left_out == {"too big": "random released needs 19 GB.", "broken": "RuntimeError: CUDA error"}
    assert [each.model for each in proved] == ["random tiny"]
    assert prove_all(models, WATCH, SIZE, 0.0)[1] == dict.fromkeys(models, "no time left")
    capsys.readouterr()
    tests = {"passed": 3, "skipped": 0, "failed": [], "cut_off": False}
    assert end({"tests": tests, "left_out": {}}, proved) == 0
    assert end({"tests": tests, "left_out": left_out}, proved) == 1
    assert end({"tests": {**tests, "failed": ["it"]}, "left_out": {}}, proved) == 1
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["proved"][0]["model"] == "random tiny"


def test_tests_are_counted(tmp_path: Path):
    # Names of tests count from where the settings are, wherever this runs.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_some.py").write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n@pytest.mark.skip\ndef test_c(): pass\n"
    )
    assert run_tests(tmp_path, 60) == {"passed": 1, "skipped": 1, "failed": ["test_some.test_b"], "cut_off": False}
    (tmp_path / "test_some.py").write_text("import time\ndef test_a(): time.sleep(60)\n")
    assert run_tests(tmp_path, 3)["cut_off"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_in_a_sentence():
    done = subprocess.run([sys.executable, "-m", "tests.gpu"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (1, f"{NO_GPU}\n", "")
