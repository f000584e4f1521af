"""Products in parts, whatever the processor at hand multiplies fast."""

import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from engine.models import network, products
from engine.models.gemma.network import GELU
from engine.models.logits import Head, columns
from engine.models.masked.network import SILU
from engine.models.network import Activation, FeedForward, Linear, feed_forward, lay_out, side_by_side
from engine.models.products import in_threads, linear, linear_by_parts, reordered, summed, threads_for
from engine.models.quantized.layers import CpuInt8
from tests.engine.formats import NEEDS_INT8, choose

ROWS, INPUTS = 700, 48
"""Several parts of the weight, the last of them smaller."""


@pytest.fixture(params=[True, False], ids=["units", "no units"])
def bfloat16_units(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both kinds of processor on whichever this is."""

    choose(monkeypatch, bfloat16=request.param)
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


@pytest.mark.parametrize(
    ("parameters", "device", "threads"), [(13_000_000, "cpu", 1), (500_000_000, "cpu", 2), (13_000_000, "cuda:0", 2)]
)
def test_a_small_model_has_one_thread_while_it_is_asked(parameters: int, device: str, threads: int):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads_for(parameters, device):
            assert torch.get_num_threads() == threads
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.fixture(params=[True, False], ids=["oneDNN", "as they are"])
def reorders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether weights are worth a second order, on whichever processor this is."""
    choose(monkeypatch, ordered_float32=request.param)
    return request.param


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 3), (1, 40)], ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_a_weight_in_a_second_order_multiplies_the_same(shape: tuple[int, ...], biased: bool, reorders: bool):
    layers = [Linear(INPUTS, size, bias=biased) for size in (ROWS, 32)]
    for layer in layers:
        layer.load_state_dict({name: numbers(*held.shape) for name, held in layer.state_dict().items()})
    states = numbers(*shape, INPUTS)
    expected = [layer(states) for layer in layers]
    lay_out(layers, twice=True)
    found = side_by_side(layers, states)
    for own, exact in zip(found, expected, strict=True):
        torch.testing.assert_close(own, exact, rtol=1e-5, atol=1e-4)
    # A gradient has to know the weight.
    states.requires_grad_()
    side_by_side(layers, states)[0].sum().backward()
    assert states.grad is not None
    assert (reordered(layers[0].weight) is not None) == reorders


@pytest.mark.usefixtures("reorders")
@pytest.mark.parametrize("activation", [GELU, SILU], ids=["gelu", "silu"])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 3), (1, 40)], ids=str)
def test_a_gated_block_computes_the_same_however_its_weights_lie(activation: Activation, shape: tuple[int, ...]):
    block, states = FeedForward(INPUTS, ROWS), numbers(*shape, INPUTS)
    block.load_state_dict({name: numbers(*held.shape) / 8 for name, held in block.state_dict().items()})
    exact = feed_forward(block, states, activation)
    lay_out([block.gate_proj, block.up_proj], twice=True, apart=True)
    lay_out([block.down_proj], twice=True)
    torch.testing.assert_close(feed_forward(block, states, activation), exact, rtol=1e-4, atol=1e-3)
    # A gradient has to know the weights.
    states.requires_grad_()
    feed_forward(block, states, activation).sum().backward()
    assert states.grad is not None


@NEEDS_INT8
@pytest.mark.parametrize("bfloat16", [True, False], ids=["came in bfloat16", "came in float32"])
@pytest.mark.parametrize("biased", [False, True])
def test_where_bfloat16_is_slow_what_came_in_it_is_multiplied_in_8_bits(
    bfloat16: bool, biased: bool, monkeypatch: pytest.MonkeyPatch
):
    choose(monkeypatch, int8=True)
    monkeypatch.setattr(network, "_LEAST_IN_8_BIT", ROWS * INPUTS)
    layers = [Linear(INPUTS, size, bias=biased) for size in (ROWS, 32)]
    for layer in layers:
        given = {name: numbers(*held.shape) for name, held in layer.state_dict().items()}
        layer.load_state_dict({name: each.bfloat16().float() if bfloat16 else each for name, each in given.items()})
    for shape in ((40, INPUTS), (1, INPUTS)):
        states = numbers(*shape)
        expected = [layer(states) for layer in layers]
        lay_out(layers, twice=True)
        found = side_by_side(layers, states)
        rounds = bfloat16 and len(states) > 1
        for own, exact in zip(found, expected, strict=True):
            error = float(((own - exact).norm() / exact.norm()).detach())
            assert 1e-4 < error < 0.02 if rounds else error < 1e-6
    # A gradient has to know the weight.
    states = numbers(40, INPUTS).requires_grad_()
    side_by_side(layers, states)[0].sum().backward()
    torch.testing.assert_close(states.grad, layers[0].weight.sum(dim=0).expand(40, -1))


def test_products_are_of_few_numbers_of_rows(monkeypatch: pytest.MonkeyPatch):
    """For each oneDNN writes programs of its own: a step of a new number of rows took as long as two."""
    choose(monkeypatch, ordered_float32=True)
    seen, pointwise = set[int](), products._pointwise

    def counted(rows: torch.Tensor, *more: Any) -> torch.Tensor:
        seen.add(len(rows.flatten(0, -2)))
        return pointwise(rows, *more)

    monkeypatch.setattr(products, "_pointwise", counted)
    block = FeedForward(INPUTS, ROWS)
    block.load_state_dict({name: numbers(*held.shape) / 8 for name, held in block.state_dict().items()})
    lay_out([block.gate_proj, block.up_proj], twice=True, apart=True)
    lay_out([block.down_proj], twice=True)
    every = set[int]()
    for rows in range(2, 513):
        seen.clear()
        feed_forward(block, numbers(1, rows, INPUTS), GELU)
        side_by_side([block.down_proj], numbers(1, rows, ROWS))
        (computed,) = seen
        assert rows <= computed <= max(rows + 7, 1.25 * rows)
        every |= seen
    assert len(every) <= 24


LEARNING = """
from pathlib import Path
import torch
import torch.nn.functional as F
from engine.models.products import keep_few_programs

keep_few_programs()
weight = torch.ones(64, 64, requires_grad=True)
grown = []
for rows in range(2, 402):
    with torch.autocast("cpu", torch.bfloat16):
        F.linear(torch.ones(rows, 64), weight).sum().backward()
    grown.append(int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) << 10)
print(grown[-1] - grown[128])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_training_does_not_grow_with_each_number_of_rows():
    done = subprocess.run([sys.executable, "-c", LEARNING], capture_output=True, text=True, check=True, timeout=240)
    assert int(done.stdout) < 100 << 20


@pytest.mark.parametrize(
    ("narrow", "wide", "came", "other"),
    [
        (True, True, torch.bfloat16, torch.float32),
        (True, False, torch.bfloat16, None),
        (False, True, torch.float32, torch.float32),
        (False, False, None, None),
    ],
)
def test_a_weight_is_multiplied_in_the_format_that_is_chosen(
    narrow: bool, wide: bool, came: torch.dtype | None, other: torch.dtype | None, monkeypatch: pytest.MonkeyPatch
):
    """Of one that came in bfloat16 and of another."""
    choose(monkeypatch, bfloat16=narrow, ordered_float32=wide)
    states, drawn, bias = numbers(5, INPUTS), numbers(ROWS, INPUTS), numbers(ROWS)
    for weight, dtype in ((drawn.bfloat16().float(), came), (drawn, other)):
        second = reordered(weight)
        assert (None if second is None else second.dtype) == dtype
        found = linear(states, weight, bias, second)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, F.linear(states, weight, bias), rtol=0.02, atol=0.1)


def test_a_second_order_is_for_float32_on_a_processor(monkeypatch: pytest.MonkeyPatch):
    choose(monkeypatch, bfloat16=True, ordered_float32=True)
    assert reordered(numbers(8, 8).bfloat16()) is None
    assert reordered(torch.empty(8, 8, device="meta")) is None


@pytest.mark.usefixtures("reorders")
@pytest.mark.parametrize("width", [ROWS, 30])
def test_a_head_averages_its_table_in_any_order(width: int):
    table, weights = numbers(ROWS, INPUTS), numbers(5, width).softmax(dim=-1)
    found = Head(columns, ROWS, table).summed(weights, ROWS - width)
    torch.testing.assert_close(found, weights @ table[ROWS - width :], rtol=1e-5, atol=1e-5)


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


def test_threads_stay_as_many_after_work_that_failed():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    done: list[tuple[int, int]] = []

    def work(part: int) -> None:
        done.append((part, torch.get_num_threads()))
        if part == 3:
            raise ValueError("three")

    try:
        for _ in in_threads(work, [1, 2]):
            pass
        assert sorted(done) == [(1, 1), (2, 1)]
        with pytest.raises(ValueError, match="three"):
            for _ in in_threads(work, [3, 4]):
                pass
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
