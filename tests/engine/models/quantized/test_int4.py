"""How much of weights is left in int4."""

import pytest
import torch

from engine.models.quantized.int4 import quantize_int4, stored_int4
from engine.models.quantized.layers import int4_numbers
from tests.engine.quantized import words


def read(weights: torch.Tensor) -> torch.Tensor:
    """In int4 and back."""
    parts, lost = quantize_int4(weights)
    found = int4_numbers(parts["codes"], parts["scales"], parts["zeros"])
    assert lost == pytest.approx(float((found - weights).square().sum()), rel=1e-4, abs=1e-30)
    return found


@pytest.mark.parametrize(("degrees", "bound"), [(None, 0.08), (4.0, 0.095)], ids=["Gaussian", "heavy-tailed"])
def test_outputs_stay_near(degrees: float | None, bound: float):
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(512, 2816, generator=generator)
    if degrees:
        # Student's t.
        squares = torch.randn(4, 512, 2816, generator=generator).square().sum(dim=0)
        weights /= (squares / degrees).sqrt()
    states = torch.randn(32, 2816, generator=generator)
    exact = states @ weights.t()
    assert float((states @ read(weights).t() - exact).norm() / exact.norm()) <= bound


def test_what_four_bits_can_say_is_said():
    """Codes that use the whole range, zeros, a constant, and numbers too small for a scale."""
    weights = torch.zeros(8, 128)
    weights[:, :32] = (torch.arange(32) % 16 - 5) * 0.25
    weights[:, 32:64] = -3.0
    weights[:, 96:] = 1e-45
    torch.testing.assert_close(read(weights), weights, rtol=0, atol=1e-2)
    torch.testing.assert_close(read(weights)[:, :32], weights[:, :32], rtol=0, atol=0)


def test_stored_words_hold_eight_codes_each():
    parts, _ = quantize_int4(torch.randn(24, 64, generator=torch.Generator().manual_seed(0)))
    codes = torch.stack((parts["codes"] & 15, parts["codes"] >> 4), dim=-1).flatten(1)
    stored = stored_int4(parts)
    assert torch.equal(stored["weight_packed"], words(codes))
    assert torch.equal(stored["weight_zero_point"], words(parts["zeros"].t()).t())
    assert stored["weight_shape"].tolist() == [24, 64]
