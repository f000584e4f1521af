"""Products in whole numbers: weights of 8 bits with a scale a channel, activations of 8 bits with a scale a row.

A scale for all rows together, as torch's dynamic products have it, ruins pretrained coders: one of their channels is
huge, and in one row more than in others. A row that is divided by its own largest number loses little, and where that
number is far from all others, what was lost is rounded in its turn and multiplied as one row more. As sums of whole
numbers are exact, what comes of a row does not depend on the rows beside it.

Units for it (VNNI, AVX2) take unsigned activations: they are shifted by 128, which oneDNN makes good again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.formats import formats
from engine.models.products import missing_rows
from engine.models.quantized.packing import Pack, packed

LARGEST = 127
_ZERO = 128
"""The code of zero for unsigned activations."""
SMALLEST = 1e-30
"""The least divisor of a row, for rows of zeros."""
_FAR = 0.5
"""A row whose largest number is this share of its length or more, a quarter of its squares, is rounded twice. Coders of
0.5 and 1.5 B then lose 0.000 and 0.004 nats a token to 8 bits, and 0.022 and 0.016 where no row is."""
_FEW = 8
"""Rows up to which oneDNN compiles programs for each even number; above, see `missing_rows`."""
_AT_ONCE = 1 << 20
"""Numbers that are rounded at once: more would leave the processor's cache."""


class Rounded(NamedTuple):
    """Rows [R, K] in 8 bits."""

    codes: Tensor
    """uint8 [R, K]"""
    largest: Tensor
    """The number [R, 1] that a code's largest distance from the middle stands for."""


def rounded(rows: Tensor) -> Rounded:
    """Round rows [R, K] in float32, each by its own largest number."""
    largest = rows.abs().amax(dim=-1, keepdim=True).clamp_min_(SMALLEST)
    # Conversion cuts fractions off: so a half more is added than stands for nothing.
    return Rounded((rows * (LARGEST / largest)).add_(_ZERO + 0.5).to(torch.uint8), largest)


def _lost(rows: Tensor, by: Rounded) -> Rounded:
    """Round what rows [R, K] lost by being rounded."""
    return rounded(torch.addcmul(rows, by.codes.float().sub_(_ZERO), by.largest, value=-1 / LARGEST))


class Int8Weight(nn.Module):
    """A weight [N, K] in 8 bits. It is held as plain numbers until it is laid out together with others."""

    def __init__(self, rows: int, inputs: int) -> None:
        super().__init__()
        self.shape = (rows, inputs)
        self.codes: Tensor | None = torch.empty(rows, inputs, dtype=torch.int8)
        self.scales = nn.Buffer(torch.empty(rows), persistent=False)
        self.dtype = torch.float32
        """The number format of activations."""
        self.together: tuple[Int8Together, int] | None = None
        """The layout that it became part of, and where its rows begin in it."""

    def put(self, first: int, numbers: Tensor) -> None:
        """Take rows [R, K] in float32, from the row `first` on; they are overwritten."""
        assert self.codes is not None
        most = formats().int8_largest
        step = max(1, _AT_ONCE // self.shape[1])
        for start in range(0, len(numbers), step):
            part = numbers[start : start + step]
            largest = torch.maximum(part.amax(dim=1, keepdim=True), -part.amin(dim=1, keepdim=True))
            largest.clamp_min_(SMALLEST)
            at = slice(first + start, first + start + len(part))
            self.codes[at] = part.mul_(most / largest).round_()
            self.scales[at] = largest[:, 0] / most

    @property
    def nbytes(self) -> int:
        return self.shape[0] * (self.shape[1] + self.scales.itemsize)

    def product(self, rows: Tensor) -> Tensor:
        """Rows [R, K] times the weight, after it was laid out: [R, N] in float32."""
        assert self.together is not None
        group, start = self.together
        return group.product(rows)[:, start : start + self.shape[0]]


class Int8Linear(nn.Module):
    """A linear layer in 8 bits."""

    def __init__(self, weight: Int8Weight, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, hidden: Tensor) -> Tensor:
        if self.weight.together is None:
            laid_out([self])
        out = self.weight.product(hidden.flatten(0, -2).float()).view(*hidden.shape[:-1], -1)
        return (out if self.bias is None else out + self.bias).to(hidden.dtype)


class Int8Together:
    """Weights over the same input, side by side in oneDNN's order; their plain numbers are dropped.

    Without such products, weights become float32 before each.
    """

    def __init__(self, weights: Sequence[Int8Weight], bias: Tensor | None, pack: Pack = packed) -> None:
        self.sizes = [weight.shape[0] for weight in weights]
        plain = [weight.codes for weight in weights if weight.codes is not None]
        codes = plain[0] if len(plain) == 1 else torch.cat(plain)
        self._packed = formats().int8
        self._weight = pack(codes) if self._packed else codes
        # Of a weight's channel and of a row's largest number together.
        self._scales = torch.cat([weight.scales for weight in weights]) / LARGEST
        self._zeros = torch.zeros(len(self._scales), dtype=torch.int64)
        self._bias = bias
        start = 0
        for weight in weights:
            weight.together, weight.codes = (self, start), None
            start += weight.shape[0]

    @classmethod
    @torch.no_grad()
    def of(cls, weight: Tensor) -> Int8Together:
        """A weight [N, K] in full, which stays as it is."""
        held = Int8Weight(*weight.shape)
        held.put(0, weight.to(torch.float32, copy=True))
        return cls([held], None)

    def product(self, rows: Tensor) -> Tensor:
        """Rows [R, K] times all weights, without biases: [R, N] in float32."""
        first = rounded(rows)
        (far,) = (first.largest[:, 0] >= _FAR * torch.linalg.vector_norm(rows, dim=-1)).nonzero(as_tuple=True)
        if not len(far):
            return self._multiplied(first)
        rest = _lost(rows[far], Rounded(first.codes[far], first.largest[far]))
        both = Rounded(torch.cat((first.codes, rest.codes)), torch.cat((first.largest, rest.largest)))
        out, more = self._multiplied(both).split((len(rows), len(far)))
        return out.index_add_(0, far, more)

    def __call__(self, hidden: Tensor) -> Tensor:
        """Hidden states [..., K] in float32 through the layers: [..., N]."""
        out = self.product(hidden.flatten(0, -2))
        out = out if self._bias is None else out.add_(self._bias)
        return out.view(*hidden.shape[:-1], out.shape[-1])

    def _multiplied(self, rows: Rounded) -> Tensor:
        if not self._packed:
            sums = F.linear(rows.codes.float() - _ZERO, self._weight.float())
            return sums.mul_(self._scales).mul_(rows.largest)
        multiply: Any = torch.ops.onednn.qlinear_pointwise
        none: list[Any] = []
        count = len(rows.codes)
        more = missing_rows(count) if count > _FEW else count & (count > 1)
        codes = F.pad(rows.codes, (0, 0, 0, more)) if more else rows.codes
        out: Tensor = multiply(
            *(codes, 1.0, _ZERO, self._weight, self._scales, self._zeros, None),
            *(1.0, 0, torch.float32, "none", none, ""),
        )
        return (out[:count] if more else out).mul_(rows.largest)


def laid_out(parts: Sequence[Any], pack: Pack = packed) -> Int8Together:
    """One layer in place of several over the same input."""
    biases = [part.bias for part in parts]
    bias = None if biases[0] is None else torch.cat(biases)
    return Int8Together([part.weight for part in parts], bias, pack)
