"""Products with weights, as the processor at hand does them fastest.

A processor without units for bfloat16 multiplies in it up to two hundred times slower than in float32: there weights
become float32 part by part, each small enough to stay in the processor's cache.

In float32 torch multiplies with MKL, which leaves the widest units of processors other than Intel's unused. oneDNN does
not, with weights in an order of its own: two to three times as fast there, the same sums; in bfloat16 four times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.formats import formats, onednn_multiplies

A = TypeVar("A")
B = TypeVar("B")
Ordered = Tensor | Callable[[Tensor], Tensor]
"""A weight in oneDNN's order, or products [..., N] of rows [..., K] with it where it is held in another format."""
_NUMBERS = 1 << 19
"""Numbers of a part: 2 MB in float32."""
_ONE_THREAD_PARAMETERS = 64_000_000
"""Largest model, in parameters, that one thread serves; between the sizes that were measured it is a guess."""
LEAST_ROWS = 8
"""Rows of states in a product in oneDNN's order are filled up to a multiple of it."""
_FEW_ROWS = 32
"""Rows of states up to which weights in oneDNN's order are a gain."""
_PLAIN: Mapping[tuple[str, str], Callable[[Tensor], Tensor]] = {
    ("none", ""): lambda product: product,
    ("gelu", "tanh"): partial(F.gelu, approximate="tanh"),
    ("swish", ""): F.silu,
}
"""Activations by their names in oneDNN."""
_PROGRAMS = "128"
"""Programs of oneDNN that training keeps."""


def keep_few_programs() -> None:
    """Let oneDNN keep few of the programs that it compiles for numbers of rows. In training these numbers are new in
    each step, and a thousand programs take gigabytes. Has an effect before the first product only."""
    for name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        os.environ.setdefault(name, _PROGRAMS)


@contextmanager
def threads_for(parameters: int, device: str) -> Generator[None]:
    """Within the block a model of that size has as many threads as make it faster. Products of a small one are over
    before a second thread begins to help, and each would wait for it."""
    before = torch.get_num_threads()
    if device != "cpu" or parameters > _ONE_THREAD_PARAMETERS or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_threads(work: Callable[[A], B], parts: Sequence[A]) -> Generator[B]:
    """Run work for each of some parts in as many threads as torch has, and yield the results as they come. For many
    short operations this is faster than threads within each."""
    before = torch.get_num_threads()
    if before == 1 or len(parts) < 2:
        for part in parts:
            yield work(part)
        return
    pool = ThreadPoolExecutor(before, initializer=partial(torch.set_num_threads, 1))
    try:
        for done in as_completed([pool.submit(work, part) for part in parts]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)
        # What a thread sets holds for those that begin later, too.
        torch.set_num_threads(before)


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None, ordered: Ordered | None = None) -> Tensor:
    """`F.linear` of states [..., K] and a weight [N, K]: [..., N] in the format of the states. `ordered`: a copy of the
    weight for many rows."""
    # One row is read through at the speed of memory in any format.
    one = states.numel() == states.shape[-1]
    if ordered is not None and not one and not states.requires_grad:
        return _multiplied(states, ordered, bias)
    if one or not by_parts(weight):
        return F.linear(states, weight, bias)
    product: Callable[[Tensor, Tensor], Tensor] = _ByParts.apply if states.requires_grad else linear_by_parts
    out = product(states.flatten(0, -2), weight).view(*states.shape[:-1], len(weight))
    return (out if bias is None else out + bias).to(states.dtype)


def linear_by_parts(states: Tensor, weight: Tensor) -> Tensor:
    """States [S, K] times a weight [N, K] of any format: [S, N] in float32."""
    return linear_of_parts(states, len(weight), _parts(weight))


def linear_of_parts(states: Tensor, rows: int, parts: Iterator[tuple[int, Tensor]]) -> Tensor:
    """States [S, K] times a weight with so many rows, which comes in float32 parts [P, K], each with the number of its
    first row: [S, N] in float32."""
    states = states.float()
    out = states.new_empty(len(states), rows)
    for start, part in parts:
        out[:, start : start + len(part)] = states @ part.T
    return out


def part_rows(inputs: int) -> int:
    """Rows of a part, for weights with so many inputs."""
    return max(_NUMBERS // inputs, 1)


class _ByParts(torch.autograd.Function):
    """`linear_by_parts` with gradients for the states; the weight is frozen."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor) -> Tensor:
        ctx.weight, ctx.dtype = weight, states.dtype
        return linear_by_parts(states, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return summed(grads[0], ctx.weight).to(ctx.dtype), None


def summed(weights: Tensor, table: Tensor) -> Tensor:
    """Rows of a table [W, E] by weights [F, W] in float32: [F, E] in float32."""
    if not by_parts(table):
        return (weights.to(table.dtype) @ table).float()
    out = weights.new_zeros(len(weights), table.shape[1])
    for start, part in _parts(table):
        out += weights[:, start : start + len(part)] @ part
    return out


def prefers_bfloat16(device: str) -> bool:
    """Whether products take no longer in bfloat16 than in float32 on a `device` ("cpu", "cuda")."""
    return device == "cuda" or (device == "cpu" and formats().bfloat16)


def reordered(weight: Tensor) -> Tensor | None:
    """A copy of a weight [N, K] in oneDNN's order, for `linear`; None where that is no gain. A weight that came in
    bfloat16 stays in it where that is no slower; states are then rounded to it, as when such weights were trained, and
    sums are in float32."""
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return None
    chosen = formats()
    narrow = in_bfloat16(weight) if chosen.bfloat16 else None
    if narrow is not None:
        return _reordered(narrow)
    return _reordered(weight) if chosen.ordered_float32 else None


def in_bfloat16(weight: Tensor) -> Tensor | None:
    """A weight in bfloat16, if it came in it, which changes no number."""
    narrow = weight.bfloat16()
    return narrow if torch.equal(narrow.to(weight.dtype), weight) else None


def gated(states: Tensor, gate: Tensor, up: Tensor, down: Tensor, activation: tuple[str, str]) -> Tensor:
    """States [..., K] through a gated block [..., K] whose weights `reordered` made, all in one format. `activation`:
    oneDNN's names of the gate's function and of the way to compute it."""

    def block(rows: Tensor) -> Tensor:
        inner = _pointwise(rows, gate, None, activation)
        inner *= _pointwise(rows, up, None)
        return _pointwise(inner, down, None)

    return _in_even_rows(states, gate.dtype, block)


# The operators that torch's own compiler calls for frozen weights.


@torch.no_grad()
def _reordered(weight: Tensor) -> Tensor:
    reorder: Any = torch.ops.mkldnn._reorder_linear_weight
    return reorder(weight, _FEW_ROWS) if onednn_multiplies(weight.dtype) else weight


def _multiplied(states: Tensor, weight: Ordered, bias: Tensor | None) -> Tensor:
    if not isinstance(weight, Tensor):
        return weight(states) if bias is None else weight(states) + bias
    bias = None if bias is None else bias.to(weight.dtype)
    return _in_even_rows(states, weight.dtype, lambda rows: _pointwise(rows, weight, bias))


def _in_even_rows(states: Tensor, dtype: torch.dtype, product: Callable[[Tensor], Tensor]) -> Tensor:
    """A product [R, N] of states [..., K] in this format, as [..., N] in the format of the states.

    oneDNN compiles programs for each new number of rows, which takes as long as several products and a megabyte for
    each weight, and it keeps a thousand. So rows of zeros are added up to one of few numbers.
    """
    rows = states.to(dtype)
    more = missing_rows(states.numel() // states.shape[-1])
    if not more:
        return product(rows).to(states.dtype)
    out = product(F.pad(rows.flatten(0, -2), (0, 0, 0, more)))[:-more]
    return out.view(*states.shape[:-1], out.shape[-1]).to(states.dtype)


@cache
def missing_rows(rows: int) -> int:
    """Rows up to the next number that oneDNN compiles programs for: four to eight in each power of two."""
    return -rows % max(LEAST_ROWS, (1 << (rows - 1).bit_length()) // 8)


def _pointwise(rows: Tensor, weight: Tensor, bias: Tensor | None, activation: tuple[str, str] = ("none", "")) -> Tensor:
    if onednn_multiplies(weight.dtype):
        multiply: Any = torch.ops.mkldnn._linear_pointwise
        return multiply(rows, weight, bias, activation[0], [], activation[1])
    # Sums in float32, rounded at the end, are what units for the format compute.
    product = F.linear(rows.float(), weight.float(), None if bias is None else bias.float())
    return _PLAIN[activation](product).to(weight.dtype)


def by_parts(weight: Tensor) -> bool:
    """Whether products with a weight go by parts in float32, as its own format is slow here."""
    return weight.dtype == torch.bfloat16 and weight.device.type == "cpu" and not prefers_bfloat16("cpu")


def _parts(weight: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Groups of rows in float32, each with the number of its first row; their memory is reused for the next group."""
    rows = part_rows(weight.shape[1])
    room = torch.empty(min(rows, len(weight)), weight.shape[1])
    for start in range(0, len(weight), rows):
        stored = weight[start : start + rows]
        yield start, room[: len(stored)].copy_(stored)
