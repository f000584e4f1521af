"""The same model on a GPU: placed there, in bfloat16, saying what the CPU says, and gone when it is let go of."""

import gc
import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from dg_lsp.cli import run
from engine.common.request import FillRequest
from engine.fill.loading import load
from engine.fill.pipeline import fill
from engine.lab.bench.families import random_model
from engine.lab.bench.workload import rows_of
from engine.models.gemma.model import DiffusionGemma
from engine.server.memory import device_nbytes, give_back
from tests.engine.lab.bench.processes import starts

IDS = [20 + at % 40 for at in range(60)]
REQUEST = FillRequest(
    prefix="def area(width):\n    return wid", suffix="\n\nprint(area(3))\n", language="python", width=8, n=2
)
TOLERANCE = 0.15
"""Of logits up to 0.4, over four layers in bfloat16; a CPU's bfloat16 is 0.06 off."""


def loaded(path: Path, device: str) -> DiffusionGemma:
    model = load(str(path), device).model
    assert isinstance(model, DiffusionGemma)
    return model


def in_float32(path: Path, device: str = "cuda") -> DiffusionGemma:
    """On the GPU, but as exact as on the CPU; with weights that were rounded as it has them, on either."""
    model = loaded(path, device)
    model.network.module.bfloat16().float()
    model.network.lay_out()  # what lies side by side was laid out in bfloat16
    return model


def logits(model: DiffusionGemma, pinned: int = 6, steps: int = 1) -> torch.Tensor:
    """Of the last of some steps over the same two canvases."""
    rows = rows_of(model, model.encode(IDS), gap=6, pinned=pinned, batch=2)
    # The same signal for all, as it is the same canvas: drawn on the CPU.
    generator = torch.Generator().manual_seed(1)
    signal = torch.randn(12, model.head.table.shape[1], generator=generator)
    rows = replace(rows, self_conditioning=signal.to(model.network.device))
    return [model.step(rows).whole() for _ in range(steps)][-1].float().cpu()


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_a_model_goes_to_the_gpu_in_bfloat16(released: Path, device: str):
    model = loaded(released, device)
    assert model.info.device == "cuda:0"
    assert model.info.dtype == "bfloat16"
    placed = {(str(parameter.device), parameter.dtype) for parameter in model.network.module.parameters()}
    assert placed == {("cuda:0", torch.bfloat16)}


def test_a_step_says_what_the_cpu_says(released: Path):
    on_cpu = logits(in_float32(released, "cpu"))
    torch.testing.assert_close(logits(in_float32(released)), on_cpu, atol=1e-3, rtol=1e-3)
    assert (logits(loaded(released, "cuda")) - on_cpu).abs().max() < TOLERANCE


def test_a_step_that_remembers_says_what_the_cpu_says(released: Path):
    on_cpu, on_gpu = (logits(in_float32(released, device), pinned=20, steps=3) for device in ("cpu", "cuda"))
    torch.testing.assert_close(on_gpu, on_cpu, atol=1e-3, rtol=1e-3)


def test_reading_left_to_right_says_what_the_cpu_says(released: Path):
    models = [in_float32(released, device) for device in ("cpu", "cuda")]
    tokens = [list(islice(model.next_tokens(IDS), 12)) for model in models]
    assert tokens[0] == tokens[1]
    gaps, suffix = [IDS[:8], IDS[5:10]], IDS[20:40]
    scores = [model.score(model.encode(IDS), gaps, suffix) for model in models]
    for on_cpu, on_gpu in zip(*scores, strict=True):
        assert on_gpu == pytest.approx(on_cpu, abs=1e-3)


def test_contexts_that_differ_in_length_share_a_batch(released: Path):
    model = in_float32(released)
    short, long = model.encode(IDS[:20]), model.encode(IDS[::-1])
    rows = rows_of(model, short, gap=5, pinned=5, batch=2, first=True)
    together = model.step(replace(rows, contexts=[short, long])).whole()
    for row, context in enumerate((short, long)):
        alone = replace(
            rows,
            contexts=[context],
            canvas=rows.canvas[row : row + 1],
            lengths=rows.lengths[:1],
            open=rows.open[row : row + 1],
            conditioned=[False],
        )
        torch.testing.assert_close(together[5 * row : 5 * row + 5], model.step(alone).whole(), atol=1e-3, rtol=1e-3)


def test_a_seed_repeats_its_answer(released: Path):
    model = loaded(released, "cuda")
    answers = [fill(model, REQUEST) for _ in range(2)]
    assert answers[0].device == "cuda:0"
    first, again = (answer.candidates for answer in answers)
    assert first == again
    assert answers[0].width == 8


def test_the_bundled_model_fills_on_the_gpu():
    filled = load("bundled", "cuda").fill("def add(a, b):\n    return ", "\n", language="python", width=3)
    assert filled.device == "cuda:0"
    assert filled.steps >= 1


def test_memory_is_given_back_when_a_model_goes():
    """The first model aside: with it torch takes room to work in, which it keeps as long as the process lives."""
    held: list[int] = []
    for _ in range(2):
        gc.collect()
        give_back()
        held.append(device_nbytes())
        model = random_model("small", "cuda")
        fill(model, FillRequest(prefix="20 21 22", suffix="23 24", width=4))
        assert torch.cuda.memory_allocated() > 10 << 20
        del model
    give_back()
    assert device_nbytes() <= held[1]


def test_a_cached_context_lies_on_the_gpu_within_its_budget(released: Path):
    model = loaded(released, "cuda")
    context = model.encode(IDS)
    keys, values = context.store.read(0, len(IDS))
    assert keys.device.type == values.device.type == "cuda"
    assert 0 < model.cache.nbytes < torch.cuda.mem_get_info()[1]


def test_the_memory_of_an_engine_is_told_with_that_of_its_gpu():
    _, memory = starts("bundled", "cuda", repetitions=1)
    assert [each.process for each in memory][-1] == "engine, on the GPU"
    assert memory[-1].nbytes > 10 << 20


@pytest.mark.parametrize("shape", ["26b-layers=2", "dream-layers=2"])
def test_the_benchmark_runs_on_the_gpu(shape: str, capsys: pytest.CaptureFixture[str]):
    parts = ["--part", "end to end", "--part", "step", "--part", "keystroke"]
    assert run(["bench", "--shape", shape, "--device", "cuda", "--quick", "--json", *parts]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["device"] == torch.cuda.get_device_name()
    assert told["dtype"] == "bfloat16"
    assert all(figure["spread"]["median"] > 0 for figure in told["figures"])
