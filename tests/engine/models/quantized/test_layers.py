"""Each way to multiply with packed weights, against float32."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.checkpoints.directory import TensorHeader
from engine.models.quantized.layers import CpuInt4, PackedLinear, PackedWeights, PlainInt4, packed_weights
from tests.engine.quantized import LAYOUTS, draw_int4


def int4(shape: tuple[int, ...], dtype: torch.dtype, *, symmetric: bool = False) -> tuple[PackedWeights, Tensor]:
    """Random weights, and the numbers [X, N, K] that they stand for."""
    stored = TensorHeader(name="", dtype="", shape=())
    piece = {"codes": stored, "scales": stored, **({} if symmetric else {"zeros": stored})}
    header = TensorHeader(name="", dtype="INT4", shape=shape, file=Path(), pieces=(piece,))
    weights, generator = packed_weights(header, torch.bfloat16, dtype, "cpu"), torch.Generator().manual_seed(0)
    matrices: list[Tensor] = []
    for expert in range(weights.experts):
        parts, matrix = draw_int4(symmetric=symmetric)(*shape[-2:], generator)
        own = {"codes": parts["weight_packed"].view(torch.uint8), "scales": parts["weight_scale"]}
        if not symmetric:
            # Told by a number of each group: the code 0 stands for -zero times the scale.
            codes = torch.stack((own["codes"] & 15, own["codes"] >> 4), dim=-1).flatten(1)[:, ::32].float()
            scales = own["scales"].float()
            own["zeros"] = torch.where(scales > 0, codes - matrix[:, ::32] / scales, 8).round().to(torch.uint8)
        weights.put(expert, own)
        matrices.append(matrix)
    return weights, torch.stack(matrices)


def difference(found: Tensor, expected: Tensor) -> float:
    return float((found.float() - expected).norm() / expected.norm())


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    ("rows", "dtype", "kind", "bound"),
    [
        (720, torch.float32, PlainInt4, 1e-6),
        (720, torch.bfloat16, CpuInt4, 6e-3),
        # The operator takes no such rows.
        (24, torch.bfloat16, PlainInt4, 6e-3),
    ],
)
def test_products_are_those_of_the_numbers(
    rows: int, dtype: torch.dtype, kind: type[PackedWeights], bound: float, symmetric: bool
):
    weights, matrices = int4((3, rows, 96), dtype, symmetric=symmetric)
    assert isinstance(weights, kind)
    states = torch.randn(7, 96, generator=torch.Generator().manual_seed(1))
    for expert, matrix in enumerate(matrices):
        assert difference(weights.product(states.to(dtype), expert), states.to(dtype).float() @ matrix.t()) <= bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_only_experts_that_rows_were_routed_to_are_read(dtype: torch.dtype):
    weights, matrices = int4((5, 32, 64), dtype)
    expected = weights.grouped(states := torch.randn(6, 64).to(dtype), torch.tensor([0, 2, 0, 4, 0]))
    for idle in (0, 2, 4):
        weights.get_buffer("scales")[idle] = torch.nan
    assert torch.equal(weights.grouped(states, torch.tensor([0, 2, 0, 4, 0])), expected)
    by_hand = torch.cat([states[:2].float() @ matrices[1].t(), states[2:].float() @ matrices[3].t()])
    assert difference(expected, by_hand) < 6e-3


def test_a_dense_layer_keeps_its_bias():
    weights, matrices = int4((48, 64), torch.float32)
    bias = torch.nn.Parameter(torch.randn(48))
    states = torch.randn(2, 3, 64)
    found = PackedLinear(weights, bias)(states)
    torch.testing.assert_close(found, states @ matrices[0].t() + bias)


@pytest.mark.parametrize("layout", ["nvfp4-pack-quantized", "pack-quantized", "pack-quantized symmetric"])
def test_what_the_tests_store_is_what_the_published_reader_reads(layout: str):
    """The numbers that all other tests compare with, against the package that writes such checkpoints."""
    package = pytest.importorskip("compressed_tensors", reason="pip install --group dev")
    from compressed_tensors.compressors import BaseCompressor

    published = LAYOUTS[layout]
    parts, expected = published.draw(48, 64, torch.Generator().manual_seed(0))
    (group,) = published.config["config_groups"].values()
    scheme = package.quantization.QuantizationScheme.model_validate(group)
    reader = BaseCompressor.get_value_from_registry(published.config["format"])
    torch.testing.assert_close(reader.decompress(parts, scheme)["weight"].float(), expected, rtol=1e-2, atol=1e-4)
