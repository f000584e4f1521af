"""Checkpoints in 4 bit against the numbers that they stand for."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from engine.common.request import FillRequest
from engine.fill.loading import load
from engine.models import formats
from engine.models.base import Rows
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.placement import Placement
from engine.models.gemma.model import DiffusionGemma
from engine.models.quantized.layers import CpuInt4, CpuInt8, OneDnnInt8, PackedWeights
from tests.engine.formats import NEEDS_INT8, choose
from tests.engine.quantized import LAYOUTS, write_quantized
from tests.engine.tiny import signal_of


@pytest.fixture(scope="module", params=LAYOUTS)
def directories(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_quantized(tmp_path_factory.mktemp("quantized"), request.param)


def logits(path: Path) -> torch.Tensor:
    """Of a context and a canvas, first without and then with a signal."""
    placement = Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.float32)
    model = DiffusionGemma.open(read_checkpoint(path, "tiny"), placement)
    canvas = torch.arange(60, 76)[None]
    context = model.encode(list(range(30, 70)))
    open_ = torch.ones(canvas.shape, dtype=torch.bool)
    rows = Rows(
        contexts=[context], canvas=canvas, lengths=[16], open=open_, self_conditioning=None, conditioned=[False]
    )
    first = model.step(rows).whole()
    rows.self_conditioning, rows.conditioned = signal_of(model, first), [True]
    return torch.cat([first, model.step(rows).whole()])


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def test_logits_are_those_of_the_numbers(directories: tuple[Path, Path]):
    packed, plain = directories
    assert difference(logits(packed), logits(plain)) <= 1e-5


def test_weights_stay_packed_and_are_shared(directories: tuple[Path, Path]):
    packed, plain = directories
    checkpoint, whole = read_checkpoint(packed, "tiny"), read_checkpoint(plain, "tiny")
    assert checkpoint.parameters == whole.parameters
    module: Any = DiffusionGemma.open(
        checkpoint, Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.bfloat16)
    ).network.module
    of_encoder, of_decoder = module.model.encoder.language_model.layers, module.model.decoder.layers
    for one, other in zip(of_encoder, of_decoder, strict=True):
        assert isinstance(one.experts.down_proj, PackedWeights)
        assert one.experts.gate_up_proj is other.experts.gate_up_proj
        assert one.mlp.up_proj is other.mlp.up_proj
    tensors = [*module.parameters(), *module.buffers()]
    held = sum(tensor.nbytes for tensor in tensors)
    held += sum(part.nbytes for part in module.modules() if isinstance(part, OneDnnInt8))
    # What is planned for is an upper bound; of what came in full, int8 takes half.
    assert 0.6 <= held / checkpoint.nbytes_in(torch.bfloat16.itemsize) <= 1.0
    assert held < 0.75 * whole.nbytes_in(torch.bfloat16.itemsize)


def test_a_gap_is_filled(directories: tuple[Path, Path]):
    packed, plain = directories
    request = FillRequest(prefix="x = ", suffix="\n", width=4, deadline_ms=None)
    answers = [load(str(path), "cpu").answer(request).candidates for path in (packed, plain)]
    assert [each.text for each in answers[0]] == [each.text for each in answers[1]]


@pytest.mark.parametrize("layout", ["pack-quantized", "pack-quantized symmetric"])
def test_a_processor_multiplies_int4_by_its_operator(tmp_path: Path, layout: str):
    packed, plain = write_quantized(tmp_path, layout)
    half = Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.bfloat16)
    module: Any = DiffusionGemma.open(read_checkpoint(packed, "tiny"), half).network.module
    numbers = load_file(plain / "model.safetensors")
    found = {name: each for name, each in module.model.decoder.named_modules() if isinstance(each, PackedWeights)}
    assert len(found) == 4 * 9 - 1  # the last layer has no values of its own
    for name, each in found.items():
        assert isinstance(each, CpuInt4)
        expected = numbers[f"model.decoder.{name}"]
        states = torch.eye(expected.shape[-1], dtype=torch.bfloat16)
        for expert, matrix in enumerate(expected.view(-1, *expected.shape[-2:])):
            assert difference(each.product(states, expert).float().t(), matrix) < 0.01


@pytest.mark.parametrize(
    ("int8", "kind"), [pytest.param(True, OneDnnInt8, marks=NEEDS_INT8), (False, CpuInt8)], ids=["units", "no units"]
)
def test_of_what_came_in_full_a_processor_keeps_matrices_in_int8(
    int8: bool, kind: type[PackedWeights], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    choose(monkeypatch, int8=int8)
    packed, plain = write_quantized(tmp_path, "modelopt")
    half = Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.bfloat16)
    module: Any = DiffusionGemma.open(read_checkpoint(packed, "tiny"), half).network.module
    numbers = load_file(plain / "model.safetensors")
    found = {name: each for name, each in module.model.decoder.named_modules() if isinstance(each, kind)}
    assert len(found) == 4 * 7 - 1
    for name, each in found.items():
        matrix = numbers[f"model.decoder.{name}"]
        states = torch.eye(matrix.shape[-1], dtype=torch.bfloat16)
        assert difference(each.product(states, 0).float().t(), matrix) < 0.01 * 127 / formats.formats().int8_largest
    first = module.model.decoder.layers[0]
    assert first.router.proj.weight.dtype == module.model.decoder.embed_tokens.weight.dtype == torch.bfloat16


def test_packed_weights_go_where_their_layer_is_placed(directories: tuple[Path, Path]):
    packed, _ = directories
    # The meta device stands for a second one, which a test machine need not have.
    split = Placement(device="cpu", layers=("cpu", "meta", "meta", "cpu"), dtype=torch.bfloat16)
    module: Any = DiffusionGemma.open(read_checkpoint(packed, "tiny"), split).network.module
    for stack in (module.model.encoder.language_model, module.model.decoder):
        devices = [{tensor.device.type for tensor in layer.state_dict().values()} for layer in stack.layers]
        assert devices == [{"cpu"}, {"meta"}, {"meta"}, {"cpu"}]
