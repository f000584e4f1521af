"""Products in parts, whatever the processor at hand multiplies fast."""

import pytest
import torch
import torch.nn.functional as F

from engine.models import products
from engine.models.products import linear, linear_by_parts, summed
from engine.models.quantized.layers import CpuInt8

ROWS, INPUTS = 700, 48
"""Several parts of the weight, the last of them smaller."""


@pytest.fixture(params=[True, False], ids=["units", "no units"])
def bfloat16_units(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both kinds of processor on whichever this is."""

    def fixed(device: str) -> bool:
        return request.param

    monkeypatch.setattr(products, "prefers_bfloat16", fixed)
    monkeypatch.setattr("engine.models.quantized.layers.prefers_bfloat16", fixed)
    monkeypatch.setattr(products, "_NUMBERS", 256 * INPUTS)
    return request.param


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(shape[0]))


@pytest.mark.usefixtures("bfloat16_units")
@pytest.mark.parametrize("shape", [(1,), (2, 3), (40,)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_a_linear_layer_multiplies_as_torch_does(shape: tuple[int, ...], dtype: torch.dtype, biased: bool):
    states, weight = numbers(*shape, INPUTS).to(dtype), numbers(ROWS, INPUTS).to(dtype)
    bias = numbers(ROWS).to(dtype) if biased else None
    exact = F.linear(states.double(), weight.double(), None if bias is None else bias.double())
    found = linear(states, weight, bias)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), exact, rtol=0.01, atol=0.1 if dtype == torch.bfloat16 else 1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_are_summed_by_their_weights(bfloat16_units: bool, dtype: torch.dtype):
    weights, table = numbers(5, ROWS).softmax(dim=-1), numbers(ROWS, INPUTS).to(dtype)
    rounded = bfloat16_units and dtype == torch.bfloat16
    found = summed(weights, table)
    assert found.dtype == torch.float32
    torch.testing.assert_close(
        found.double(), weights.double() @ table.double(), rtol=0, atol=0.01 if rounded else 1e-5
    )


@pytest.mark.usefixtures("bfloat16_units")
@pytest.mark.parametrize("rows", [1, 16, 17, 60])
def test_weights_in_8_bit_multiply_alike_in_either_way(rows: int):
    held = CpuInt8((ROWS, INPUTS))
    held.put(0, {"numbers": numbers(ROWS, INPUTS)})
    states = numbers(rows, INPUTS).bfloat16()
    exact = linear_by_parts(states, held.codes[0]) * held.scales[0]
    torch.testing.assert_close(held(states).float(), exact, rtol=0.02, atol=0.1)
