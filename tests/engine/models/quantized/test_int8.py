import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from engine.models import formats
from engine.models.causal.model import Causal
from engine.models.causal.opening import coder_of
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.placement import Placement, memory_plan
from engine.models.quantized.int8 import Int8Linear, Int8Weight, laid_out, rounded
from engine.models.quantized.packing import Packing, _bytes, packed
from tests.engine.coder import write_coder
from tests.engine.formats import NEEDS_INT8, choose

UNITS = pytest.param(True, marks=NEEDS_INT8)


@pytest.fixture(params=[False, UNITS])
def units(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    choose(monkeypatch, int8=request.param)
    return request.param


def linear(numbers: Tensor, bias: Tensor | None = None) -> Int8Linear:
    weight = Int8Weight(*numbers.shape)
    weight.put(0, numbers.clone())
    return Int8Linear(weight, None if bias is None else nn.Parameter(bias, requires_grad=False))


def some(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_a_row_is_rounded_by_its_own_largest_number():
    rows = torch.tensor([[1.0, -127.0, 0.4, 0.6], [0.001, 0.0005, 0.0, -0.001], [0.0, 0.0, 0.0, 0.0]])
    codes, largest = rounded(rows)
    assert largest[:2, 0].tolist() == pytest.approx([127.0, 0.001])
    assert (codes.int() - 128)[0].tolist() == [1, -127, 0, 1]
    assert (codes.int() - 128)[1].tolist() == [127, 64, 0, -127]
    assert (codes.int() - 128)[2].tolist() == [0, 0, 0, 0]


LARGEST_SUMS = """
import torch
from engine.models import formats
from engine.models.formats import Processor
from engine.models.quantized.int8 import Int8Linear, Int8Weight

formats._this_processor = lambda: Processor(avx2=True)
weight = Int8Weight(64, 128)
weight.put(0, torch.ones(64, 128))
rows = torch.ones(70, 128)
for some in (rows, rows[:1], rows[:6]):
    assert torch.allclose(Int8Linear(weight, None)(some), torch.tensor(128.0)), some.shape
"""


@NEEDS_INT8
def test_the_largest_sums_do_not_overflow_where_pairs_are_added_in_16_bits():
    """As on a processor with AVX2 alone, to which oneDNN can be held."""
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
    subprocess.run([sys.executable, "-c", LARGEST_SUMS], env=environment, check=True, timeout=240)


@pytest.mark.usefixtures("units")
@pytest.mark.parametrize("count", [1, 3, 16, 70])
def test_products_are_those_of_the_rounded_numbers(count: int):
    numbers, bias = some(48, 96), some(48)
    # Some are large, and no number far from its row's others.
    rows = some(count, 96)
    rows[::2] *= 1000
    layer = linear(numbers, bias)
    assert layer.weight.codes is not None
    weight = layer.weight.codes.double() * layer.weight.scales.double()[:, None]
    codes, largest = rounded(rows)
    states = (codes.double() - 128) * largest.double() / 127
    expected = states @ weight.T + bias
    torch.testing.assert_close(layer(rows).double(), expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))
    # Not far from what was not rounded: half a step in 127 of the largest, of either; in 63 with 7 bits.
    off = (layer(rows) - (rows @ numbers.T + bias)).abs().amax(dim=1) / rows.abs().amax(dim=1)
    assert float(off.max()) < 0.2 * 127 / formats.formats().int8_largest


@pytest.mark.usefixtures("units")
@pytest.mark.parametrize("count", [1, 5, 70])
def test_a_row_with_a_number_far_from_all_others_loses_no_more_than_any_other(count: int):
    rows = some(count, 1024)
    rows[::2, 5] = 1000
    layer = linear(some(48, 1024))
    assert layer.weight.codes is not None
    weight = layer.weight.codes.double() * layer.weight.scales.double()[:, None]
    off = (layer(rows) - rows.double() @ weight.T).abs().amax(dim=1)
    # Rounded once, all others of such a row would become nothing.
    assert float(off.max()) < 5


@NEEDS_INT8
def test_a_row_gives_the_same_alone_and_among_others():
    rows = some(70, 1024)
    rows[7] *= 1e4
    rows[2::3, 9] = 1e4
    together = laid_out([linear(some(48, 1024)), linear(some(16, 1024))])
    whole = together(rows)
    for count in (1, 5, 16, 33):
        assert torch.equal(together(rows[:count]), whole[:count])
    assert together.sizes == [48, 16]


@pytest.mark.usefixtures("units")
def test_layers_that_were_laid_out_together_still_work_alone():
    one, other = linear(some(48, 96), some(48)), linear(some(16, 96), some(16))
    rows = some(4, 96)
    alone = [one(rows), other(rows)]
    one, other = linear(some(48, 96), some(48)), linear(some(16, 96), some(16))
    together = laid_out([one, other])
    assert one.weight.codes is None
    for layer, part, expected in zip((one, other), together(rows).split(together.sizes, dim=1), alone, strict=True):
        torch.testing.assert_close(layer(rows), expected)
        torch.testing.assert_close(part, expected)


@NEEDS_INT8
@pytest.mark.parametrize("shape", [(64, 64), (192, 128), (128, 320), (48, 96), (100, 70)])
def test_weights_are_packed_as_onednn_packs_them_to_the_byte(shape: tuple[int, int]):
    pack = Packing()
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        codes = torch.randint(-127, 128, shape, dtype=torch.int8, generator=generator)
        assert torch.equal(_bytes(pack(codes)), _bytes(packed(codes)))


def placed(checkpoint: Checkpoint, *, int8: bool) -> Placement:
    return Placement(device="cpu", layers=("cpu",) * checkpoint.layers, dtype=torch.float32, int8=int8)


@pytest.mark.usefixtures("units")
@pytest.mark.parametrize("tied", [True, False])
def test_a_coder_in_8_bit_says_nearly_the_same(tmp_path: Path, tied: bool):
    checkpoint = read_checkpoint(write_coder(tmp_path / "coder.gguf", tied=tied), "coder")
    wide, narrow = (Causal.open(checkpoint, placed(checkpoint, int8=int8), None) for int8 in (False, True))
    ids = list(range(3, 40))
    torch.testing.assert_close(
        narrow.network.embeddings(torch.tensor([ids])), wide.network.embeddings(torch.tensor([ids]))
    )
    whole = [model.score(model.encode([1, 2]), [ids], []) for model in (wide, narrow)]
    off = (torch.tensor(whole[0]) - torch.tensor(whole[1])).abs()
    assert 0 < float(off.mean()) < 0.05
    # A quarter of what float32 takes, and the table of embeddings is not there a second time.
    plans = [memory_plan(checkpoint, placed(checkpoint, int8=int8)).weights for int8 in (False, True)]
    assert plans[1] < 0.3 * plans[0]


@pytest.mark.usefixtures("units")
def test_keys_and_values_are_kept_in_bfloat16_where_the_processor_multiplies_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    checkpoint = read_checkpoint(write_coder(tmp_path / "coder.gguf"), "coder")
    nbytes: list[int] = []
    for narrow in (True, False):
        choose(monkeypatch, bfloat16=narrow, int8=True)
        model = Causal.open(checkpoint, placed(checkpoint, int8=True), None)
        model.read_ahead([1, 2])
        assert model.encode([1, 2]).store.read(0, 1)[0].dtype == (torch.bfloat16 if narrow else torch.float32)
        nbytes.append(model.network.token_nbytes)
    assert nbytes[1] == 2 * nbytes[0]


@NEEDS_INT8
def test_no_weight_is_kept_twice_while_a_coder_loads(tmp_path: Path):
    checkpoint = read_checkpoint(write_coder(tmp_path / "coder.gguf", tied=False), "coder")
    network = coder_of(checkpoint, placed(checkpoint, int8=True)).network
    layers = [part for group in network.linear_layers() for part in group] + [network.module.lm_head]
    assert all(isinstance(layer, Int8Linear) and layer.weight.codes is None for layer in layers)
    # Laid out side by side already: what a step reads is the same afterwards.
    before = [group[0].together for group in network.linear_layers()]
    network.lay_out()
    assert [group[0].together for group in network.linear_layers()] == before
