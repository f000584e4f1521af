"""Steps as graphs on a GPU, against launched ones."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.bench.families import random_model
from engine.bench.workload import rows_of, token_ids
from engine.models.canvas_model import CanvasModel
from tests.engine.models.test_static_steps import steps
from tests.gpu.test_cuda import in_float32


def check(model: CanvasModel, *, compiles: bool = False, bound: float = 1e-3) -> None:
    graphs = model.static
    assert graphs is not None
    graphs.compiles = compiles
    model.static = None
    expected = [steps(model, context=length) for length in (100, 300, 100, 40)]
    model.static = graphs
    for _ in range(2):
        model.forget()
        for length, launched in zip((100, 300, 100, 40), expected, strict=True):
            for one, other in zip(steps(model, context=length), launched, strict=True):
                torch.testing.assert_close(one, other, rtol=bound, atol=bound)
    assert graphs.widths
    assert graphs.count > len(graphs.widths)


@pytest.mark.parametrize("compiles", [False, True])
def test_graphs_say_what_launches_say(released: Path, compiles: bool):
    check(in_float32(released), compiles=compiles)


@pytest.mark.parametrize("shape", ["small", "masked-small"])
def test_so_they_do_in_both_families(shape: str):
    model = random_model(shape, "cuda")
    assert isinstance(model, CanvasModel)
    check(model, bound=0.1)


@pytest.mark.parametrize("way", ["launched", "graphs"])
def test_nothing_waits_in_a_step(released: Path, way: str):
    model = in_float32(released)
    if way == "launched":
        model.static = None
    rows = rows_of(model, model.encode(token_ids(model, 60)), gap=9, pinned=20, batch=2, first=True)
    # Where the canvases are read is the loop's own.
    rows = replace(rows, canvas=rows.canvas.cpu(), open=rows.open.cpu())
    for _ in range(3):
        model.step(rows)
    torch.cuda.set_sync_debug_mode("error")
    try:
        model.step(rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")
