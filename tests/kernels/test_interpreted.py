"""The kernel as Triton interprets it, in float32, against the plain reference, which rounds as it does."""

import pytest
import torch
from torch import Tensor

from engine.models.quantized.layers import PackedWeights, TritonPacked
from tests.engine.quantized import FORMATS, random_packed

SIZES = {
    "empty experts": [0, 3, 0, 9, 0],
    "ragged rows": [1, 16, 17, 33, 2],
    "one expert": [0, 0, 0, 0, 7],
    "more tiles than rows": [1, 1, 0, 1, 1],
    "many rows": [0, 150, 65, 64, 1],
}


def difference(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("layout", FORMATS)
def test_rows_by_expert(layout: str, sizes: list[int]):
    # Neither a multiple of a tile.
    weights = random_packed(layout, (len(sizes), 80, 96))
    states = torch.randn(sum(sizes), 96, generator=torch.Generator().manual_seed(1))
    counts = torch.tensor(sizes)
    assert difference(TritonPacked(weights).grouped(states, counts), weights.grouped(states, counts)) <= 1e-6


@pytest.mark.parametrize("layout", FORMATS)
def test_a_dense_layer(layout: str):
    weights = random_packed(layout, (192, 704))
    states = torch.randn(2, 19, 704, generator=torch.Generator().manual_seed(1))
    assert difference(TritonPacked(weights)(states), weights(states)) <= 1e-6


@pytest.mark.parametrize("layout", FORMATS)
def test_every_code_is_what_it_stands_for(layout: str):
    """One input at a time, so that each weight is seen alone: equal, not only near."""
    weights = random_packed(layout, (64, 64))
    weights.codes.copy_(torch.arange(64 * 32).view(1, 64, 32) % 256)
    eye = torch.eye(64)
    torch.testing.assert_close(TritonPacked(weights)(eye), weights(eye), rtol=3e-7, atol=0)


@pytest.mark.parametrize("layout", FORMATS)
def test_experts_without_rows_are_not_read(layout: str):
    weights = random_packed(layout, (4, 64, 64))
    states, counts = torch.randn(5, 64), torch.tensor([0, 2, 0, 3])
    kernel: PackedWeights = TritonPacked(weights)
    expected = kernel.grouped(states, counts)
    # What is not read may lie anywhere: the first and the third expert say something else now.
    weights.codes[[0, 2]] += 1
    weights.get_buffer("scales")[[0, 2]] = 127
    assert torch.equal(kernel.grouped(states, counts), expected)


def test_states_that_lie_apart_are_taken_as_they_are():
    weights = random_packed("int4", (64, 64))
    states = torch.randn(9, 128, generator=torch.Generator().manual_seed(1))[:, ::2]
    assert difference(TritonPacked(weights)(states), weights(states)) <= 1e-6
    assert TritonPacked(weights)(states[:0]).shape == (0, 64)
