"""The kernel for weights in 4 bit on a GPU, against the plain reference there."""

import pytest
import torch

from engine.models.quantized.layers import TritonPacked, packed_kind
from tests.engine.quantized import FORMATS, random_packed

ROUTED = [0, 3, 0, 9, 40, 1, 0, 130]


@pytest.fixture(autouse=True)
def triton_is_there() -> None:
    pytest.importorskip("triton", reason="torch came without Triton: pip install triton")


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 3e-6), (torch.bfloat16, 8e-3)])
@pytest.mark.parametrize("layout", FORMATS)
def test_rows_by_expert(layout: str, dtype: torch.dtype, bound: float):
    weights = random_packed(layout, (len(ROUTED), 1408, 704), dtype).to("cuda")
    states = torch.randn(sum(ROUTED), 704, device="cuda", dtype=dtype)
    sizes = torch.tensor(ROUTED, device="cuda")
    expected = weights.grouped(states.float(), sizes)
    found = TritonPacked(weights).grouped(states, sizes).float()
    assert float((found - expected).norm() / expected.norm()) <= bound


@pytest.mark.parametrize("layout", FORMATS)
def test_a_dense_layer(layout: str):
    weights = random_packed(layout, (4096, 2816), torch.bfloat16).to("cuda")
    states = torch.randn(48, 2816, device="cuda", dtype=torch.bfloat16)
    expected = weights(states.float())
    assert float((TritonPacked(weights)(states).float() - expected).norm() / expected.norm()) <= 8e-3


def test_it_is_what_weights_are_loaded_for():
    kernel = torch.cuda.get_device_capability()[0] >= 8
    assert (packed_kind("NVFP4", torch.bfloat16, "cuda:0") is TritonPacked) == kernel
