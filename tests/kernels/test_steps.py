"""A step through experts in 4 bit, with the kernel as Triton interprets it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.lab.bench.workload import rows_of
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.placement import Placement
from engine.models.gemma.model import DiffusionGemma
from engine.models.gemma.network import GemmaNetwork, after_attention
from engine.models.quantized.layers import PackedWeights, PlainInt4, PlainNvfp4, TritonPacked
from tests.engine.models.test_static_steps import Literals, Uploads, check_same, elsewhere, static, steps
from tests.engine.quantized import random_packed, write_quantized
from tests.gpu.proof import nbytes_read

IDS = [20 + at % 40 for at in range(60)]


@pytest.fixture(scope="module", params=["modelopt", "nvfp4-pack-quantized", "pack-quantized"])
def packed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_quantized(tmp_path_factory.mktemp("packed"), request.param)[0]


def opened(packed: Path, *, kernel: bool) -> DiffusionGemma:
    placement = Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.float32)
    model = DiffusionGemma.open(read_checkpoint(packed, "tiny"), placement)
    if kernel:
        with_kernel(model.network.module)
    return model


def with_kernel(module: torch.nn.Module) -> None:
    for part in list(module.modules()):
        for name, own in list(part.named_children()):
            if isinstance(own, PlainInt4 | PlainNvfp4) and not isinstance(part, TritonPacked):
                setattr(part, name, TritonPacked(own))


@pytest.mark.parametrize("captured", [False, True])
def test_logits_are_those_of_the_reference(packed: Path, captured: bool):
    expected, model = opened(packed, kernel=False), opened(packed, kernel=True)
    made = static(model) if captured else None
    for _ in range(3 if captured else 1):
        check_same(steps(model, 2), steps(expected, 2))
    assert made is None or made.count >= 2


def test_experts_are_chosen_without_a_look_at_what_was_routed(packed: Path):
    model: Any = elsewhere(opened(packed, kernel=True))
    experts = model.network.layers[0].experts
    assert isinstance(experts.down_proj, PackedWeights)
    rows = rows_of(model, model.encode(IDS), gap=9, pinned=20, first=True)
    with Uploads() as uploads, Literals() as literals:
        logits = model.step(rows)
    assert logits.hidden.device.type == "meta"
    assert (uploads.count, uploads.waited, literals.count) == (1, 0, 0)


def test_bytes_of_experts_without_rows_are_not_counted():
    weights = TritonPacked(random_packed("int4", (4, 64, 64)))
    whole = sum(part.nbytes for part in weights.buffers())
    states = torch.randn(5, 64)
    assert nbytes_read(weights, lambda: weights.grouped(states, torch.tensor([0, 5, 0, 0]))) == whole // 4
    assert nbytes_read(weights, lambda: weights.grouped(states, torch.tensor([1, 1, 1, 2]))) == whole


def test_a_layer_is_compiled_as_one_piece(packed: Path):
    model = opened(packed, kernel=True)
    network: GemmaNetwork = model.network
    layer, hidden = network.layers[0], torch.randn(1, 16, 64, generator=torch.Generator().manual_seed(0))
    attended = torch.randn(1, 4, 16, network.head_size(0), generator=torch.Generator().manual_seed(1))
    compiled = torch.compile(after_attention, dynamic=False, fullgraph=True, backend="aot_eager")
    found, expected = (each(layer, hidden, attended, 2) for each in (compiled, after_attention))
    torch.testing.assert_close(found, expected)
