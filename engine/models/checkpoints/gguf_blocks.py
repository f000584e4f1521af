"""Decodes blocks of GGUF's types to numbers, many at once: a coder of a billion weights in seconds.

Source: ggml's `dequantize_row_*` (ggml-quants.c); the package `gguf` computes the same four times as slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from engine.models.checkpoints.gguf import BLOCKS


def decoded(blocks: Tensor, dtype: str) -> Tensor:
    """Blocks, uint8 [B, bytes of a block], as float32 [B, numbers of a block]."""
    return _DECODERS[dtype](blocks)


def _float(blocks: Tensor, kind: torch.dtype) -> Tensor:
    return _view(blocks, kind).float()


def _view(part: Tensor, kind: torch.dtype) -> Any:
    return part.contiguous().view(kind)


def _half(blocks: Tensor, at: int) -> Tensor:
    """The half-precision scale [B, 1] at this byte of each block."""
    return _view(blocks[:, at : at + 2], torch.float16).float()


def _words(part: Tensor, kind: torch.dtype = torch.int64) -> Tensor:
    """Bytes [..., N] as words, to work on several at once."""
    # A copy in any case: a single block would begin between two words.
    return part.clone(memory_format=torch.contiguous_format).view(kind)


def _bytes(value: int, count: int = 8) -> int:
    """A word with this value in each byte."""
    return int.from_bytes(bytes((value,)) * count, "little", signed=True)


def _nibbles(packed: Tensor, run: int) -> Tensor:
    """The halves of bytes [..., 8 * N], as words [..., 2 * N]: of each `run` of bytes first the lower halves, then the
    upper ones."""
    words = _words(packed).unflatten(-1, (-1, run // 8))
    halves = torch.stack((words, words >> 4), dim=-2)
    return halves.bitwise_and_(_bytes(15)).flatten(-3)


def _spread(clear: int, set_: int) -> Tensor:
    """For each byte a word, with one byte for each bit."""
    bits = torch.arange(256)[:, None] >> torch.arange(8) & 1
    return torch.where(bits.bool(), set_, clear).to(torch.uint8).view(torch.int64)[:, 0]


_SIXTEENS = _spread(0, 16)
_LESS_SIXTEEN = _spread(0xF0, 0)
"""Added to a 4-bit number to make it signed: -16 where its fifth bit is missing."""


def _fifth_bits(packed: Tensor, table: Tensor) -> Tensor:
    """The fifth bits of bytes [B, 4], as words [B, 4]."""
    return table.index_select(0, packed.flatten().int()).view(-1, 4)


def _q4_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _nibbles(blocks[:, 2:], 16).view(torch.int8).sub_(8).float()


def _q4_1(blocks: Tensor) -> Tensor:
    return (_half(blocks, 0) * _nibbles(blocks[:, 4:], 16).view(torch.uint8).float()).add_(_half(blocks, 2))


def _q5_0(blocks: Tensor) -> Tensor:
    codes = _nibbles(blocks[:, 6:], 16).bitwise_or_(_fifth_bits(blocks[:, 2:6], _LESS_SIXTEEN))
    return codes.view(torch.int8).float().mul_(_half(blocks, 0))


def _q5_1(blocks: Tensor) -> Tensor:
    codes = _nibbles(blocks[:, 8:], 16).bitwise_or_(_fifth_bits(blocks[:, 4:8], _SIXTEENS))
    return codes.view(torch.uint8).float().mul_(_half(blocks, 0)).add_(_half(blocks, 2))


def _q5_k(blocks: Tensor) -> Tensor:
    high = _words(blocks[:, None, 16:48]) >> torch.arange(8)[:, None]
    return _scaled(blocks, _nibbles(blocks[:, 48:], 32).bitwise_or_((high & _bytes(1)).flatten(1) << 4))


def _scaled(blocks: Tensor, codes: Tensor) -> Tensor:
    """Codes [B, 256], in words, times the scale of their group of 32, less its minimum; scales and minima have six bits
    each, in twelve bytes."""
    first, second, third = _words(blocks[:, 4:16], torch.int32).unbind(1)
    two, four, six = (_bytes(value, 4) for value in (3, 15, 63))
    scales = torch.stack((first & six, (third & four) | (first >> 6 & two) << 4), dim=1).view(torch.uint8)
    minima = torch.stack((second & six, (third >> 4 & four) | (second >> 6 & two) << 4), dim=1).view(torch.uint8)
    numbers = codes.view(torch.uint8).float().unflatten(1, (8, 32)).mul_((_half(blocks, 0) * scales)[:, :, None])
    return numbers.sub_((_half(blocks, 2) * minima)[:, :, None]).flatten(1)


def _q6_k(blocks: Tensor) -> Tensor:
    low = _nibbles(blocks[:, :128], 64).unflatten(1, (2, 4, 4))
    high = _words(blocks[:, 128:192].unflatten(1, (2, 1, 32))) >> torch.tensor([[0], [2], [4], [6]])
    codes = ((high & _bytes(3)) << 4).bitwise_or_(low).flatten(1).view(torch.int8).sub_(32)
    scales = _half(blocks, 208) * _view(blocks[:, 192:208], torch.int8)
    return codes.float().view(-1, 16, 16).mul_(scales[:, :, None]).flatten(1)


_DECODERS: dict[str, Callable[[Tensor], Tensor]] = {
    "F32": lambda blocks: _float(blocks, torch.float32),
    "F16": lambda blocks: _float(blocks, torch.float16),
    "BF16": lambda blocks: _float(blocks, torch.bfloat16),
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": lambda blocks: blocks[:, 2:].view(torch.int8).float().mul_(_half(blocks, 0)),
    "Q4_K": lambda blocks: _scaled(blocks, _nibbles(blocks[:, 16:], 32)),
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
assert _DECODERS.keys() == BLOCKS.keys()
