"""Steps as graphs on a GPU, against launched ones."""

import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.lab.bench.families import random_model
from engine.lab.bench.workload import rows_of, token_ids
from engine.models.canvas_model import CanvasModel
from tests.engine.models.test_static_steps import steps
from tests.engine.quantized import write_quantized
from tests.gpu.proof import fusing
from tests.gpu.test_cuda import in_float32

LENGTHS = (100, 300, 100, 40)


@pytest.fixture(scope="module", params=["modelopt", "pack-quantized"])
def packed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Experts in 4 bit: with those in full torch may ask the device for their rows, which no graph can."""
    pytest.importorskip("triton", reason="torch came without Triton: pip install triton")
    return write_quantized(tmp_path_factory.mktemp("packed"), request.param)[0]


def check(model: CanvasModel[Any], bound: float, *, compiles: bool = False) -> None:
    graphs = model.static
    assert graphs is not None
    model.static = None
    expected = [steps(model, context=length) for length in LENGTHS]
    model.static = graphs
    with fusing(model.network) if compiles else nullcontext():
        for _ in range(2):
            model.forget()
            for length, launched in zip(LENGTHS, expected, strict=True):
                for one, other in zip(steps(model, context=length), launched, strict=True):
                    assert float((one - other).norm() / other.norm()) <= bound
    assert graphs.widths
    assert graphs.count > len(graphs.widths)


# A compiler's advice for float32, which nobody is served in there, and what it says where it splits a router's sum.
@pytest.mark.filterwarnings("ignore:TensorFloat32", "ignore:\\s*Online softmax is disabled")
@pytest.mark.parametrize("compiles", [False, True])
def test_graphs_say_what_launches_say(packed: Path, compiles: bool):
    check(in_float32(packed), 1e-3, compiles=compiles)


@pytest.mark.parametrize("shape", ["small", "masked-small"])
def test_so_they_do_in_both_families(shape: str):
    model = random_model(shape, "cuda")
    assert isinstance(model, CanvasModel)
    check(model, 0.1)


@pytest.mark.parametrize("way", ["launched", "graphs"])
def test_nothing_waits_in_a_step(packed: Path, way: str):
    model = in_float32(packed)
    if way == "launched":
        model.static = None
    rows = rows_of(model, model.encode(token_ids(model, 60)), gap=9, pinned=20, batch=2, first=True)
    # Where the canvases are read is the loop's own.
    rows = replace(rows, canvas=rows.canvas.cpu(), open=rows.open.cpu())
    for _ in range(3):
        model.step(rows)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the mode is a prototype
            torch.cuda.set_sync_debug_mode("error")
        model.step(rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")
