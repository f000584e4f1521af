"""Each way to multiply with packed weights, against float32."""

from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine.models import products
from engine.models.checkpoints.directory import TensorHeader
from engine.models.quantized import layers
from engine.models.quantized.layers import (
    CpuInt4,
    CpuNvfp4,
    PackedLinear,
    PackedWeights,
    PlainInt4,
    PlainNvfp4,
    TritonPacked,
    WeightFormat,
    packed_in,
    packed_kind,
    packed_weights,
    product_ways,
)
from tests.engine.quantized import LAYOUTS, draw_int4, random_packed


def described(layout: WeightFormat, shape: tuple[int, ...], *, symmetric: bool = False) -> TensorHeader:
    stored = TensorHeader(name="", dtype="", shape=())
    piece: Any = {"codes": stored, "scales": stored, **({} if symmetric or layout == "NVFP4" else {"zeros": stored})}
    pieces = (piece,) * (shape[0] if len(shape) == 3 and layout == "NVFP4" else 1)
    return TensorHeader(name="", dtype=layout, shape=shape, file=Path(), pieces=pieces)


def int4(shape: tuple[int, ...], dtype: torch.dtype, *, symmetric: bool = False) -> tuple[PackedWeights, Tensor]:
    """Random weights, and the numbers [X, N, K] that they stand for."""
    header = described("INT4", shape, symmetric=symmetric)
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


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-6), (torch.bfloat16, 6e-3)])
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_nvfp4_on_a_processor_multiplies_as_the_reference(
    monkeypatch: pytest.MonkeyPatch, rows: int, dtype: torch.dtype, bound: float
):
    """In several parts, the last of them smaller, with every code and every scale that is a number."""
    monkeypatch.setattr(products, "_NUMBERS", 256 * 96)
    plain = random_packed("nvfp4", (3, 720, 96))
    assert isinstance(plain, PlainNvfp4)
    weights = packed_weights(described("NVFP4", (3, 720, 96)), torch.bfloat16, dtype, "cpu")
    assert isinstance(weights, CpuNvfp4)
    for expert, multiplier in enumerate(plain.multiplier):
        # Which is stored once where gate and up have the same.
        own = {"codes": plain.codes[expert], "scales": plain.scales[expert], "multiplier": multiplier[:1]}
        weights.put(expert, own)
        plain.multiplier[expert] = multiplier[0]
    states = torch.randn(rows, 96, generator=torch.Generator().manual_seed(1)).to(dtype)
    for expert in range(3):
        found = weights.product(states, expert)
        assert found.dtype == dtype
        assert difference(found, states.float() @ plain.matrix(expert).t()) <= bound
    # An adapter is trained through it.
    (product := weights.product(states.requires_grad_(), 1)).backward(given := torch.ones_like(product))
    assert states.grad is not None
    assert difference(states.grad, given.float() @ plain.matrix(1)) <= bound


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


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (12, 0), None])
def test_each_device_has_its_way(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] | None):
    """Of a GPU only what it says of itself; None: a build of torch for GPUs without Triton."""
    monkeypatch.setattr(layers, "find_spec", lambda name: ModuleSpec(name, None) if capability else None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    kernel = capability is not None and capability >= (8, 0)
    for layout, plain, on_cpu in (("INT4", PlainInt4, CpuInt4), ("NVFP4", PlainNvfp4, CpuNvfp4)):
        assert packed_kind(layout, torch.bfloat16, "cuda:1") is (TritonPacked if kernel else plain)
        assert packed_kind(layout, torch.bfloat16, "cpu") is on_cpu
        for other in ("mps", "xpu:0", "meta"):
            assert packed_kind(layout, torch.bfloat16, other) is plain
    said = product_ways("cuda:0")
    assert ("Triton kernel" in said) == kernel
    assert ("pip install triton" in said) == (capability is None)


@pytest.mark.parametrize("shape", [(3, 48, 64), (48, 64)])
@pytest.mark.parametrize("layout", ["INT4", "NVFP4"])
def test_on_other_devices_only_common_formats_are_computed_with(layout: WeightFormat, shape: tuple[int, ...]):
    """As Apple's, which know no floats of 64 bit and none of 8."""
    weights = packed_weights(described(layout, shape), torch.bfloat16, torch.bfloat16, "meta").to_empty(device="cpu")
    assert isinstance(weights, PlainInt4 | PlainNvfp4)
    for part in weights.buffers():
        part.fill_(1)
    states, counts = torch.randn(4, 64).bfloat16(), torch.tensor([1, 0, 3])
    with Formats() as seen:
        out = weights.grouped(states, counts) if len(shape) == 3 else weights(states)
    assert out.shape == (4, 48)
    assert out.isfinite().all()
    assert torch.bfloat16 in seen.formats
    # Scales of NVFP4 are looked up in a table that the processor makes.
    tables = {torch.float8_e4m3fn} if layout == "NVFP4" else set()
    assert {each for each in seen.formats if each.itemsize in (1, 8) and each.is_floating_point} == tables
    assert seen.largest_float8 <= 256


class Formats(TorchDispatchMode):
    """What formats numbers had within the block."""

    def __init__(self) -> None:
        super().__init__()
        self.formats, self.largest_float8 = set[torch.dtype](), 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for each in tree_leaves((args, kwargs, out)):
            if isinstance(each, Tensor):
                self.formats.add(each.dtype)
                if each.dtype == torch.float8_e4m3fn:
                    self.largest_float8 = max(self.largest_float8, each.numel())
        return out


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


def test_what_wraps_packed_weights_is_counted_once():
    stored = random_packed("nvfp4", (2, 64, 64), torch.float32)
    module = torch.nn.Sequential(TritonPacked(stored), torch.nn.Linear(4, 4))
    assert list(packed_in(module).values()) == [module[0]]
    assert list(packed_in(torch.nn.Sequential(stored)).values()) == [stored]
