"""Blocks of GGUF's types as numbers, many at once: a coder of a billion weights in seconds.

Source: ggml's `dequantize_row_*` (ggml-quants.c); the package `gguf` computes the same four times as slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from engine.models.checkpoints.gguf import BLOCKS


def decoded(blocks: Tensor, dtype: str) -> Tensor:
    """Float32 [B, numbers of a block] of uint8 [B, bytes of a block]."""
    return _DECODERS[dtype](blocks)


def _float(blocks: Tensor, kind: torch.dtype) -> Tensor:
    return _view(blocks, kind).float()


def _view(part: Tensor, kind: torch.dtype) -> Any:
    return part.contiguous().view(kind)


def _half(blocks: Tensor, at: int) -> Tensor:
    """The scale [B, 1] that is stored at a byte of each block."""
    return _view(blocks[:, at : at + 2], torch.float16).float()


def _nibbles(packed: Tensor, run: int) -> Tensor:
    """uint8 [..., 2 * N] of [..., N]: of each `run` bytes the lower halves, then the upper ones."""
    runs = packed.unflatten(-1, (-1, 1, run))
    return torch.cat((runs & 15, runs >> 4), dim=-2).flatten(-3)


def _fifth_bits(packed: Tensor) -> Tensor:
    """uint8 [B, 32] of [B, 4]: a bit each, as 0 or 16."""
    shifts = torch.arange(8, dtype=torch.uint8)
    return ((packed[:, :, None] >> shifts & 1) << 4).flatten(1)


def _q4_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:], 16).float() - 8)


def _q4_1(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _nibbles(blocks[:, 4:], 16) + _half(blocks, 2)


def _q5_0(blocks: Tensor) -> Tensor:
    codes = _nibbles(blocks[:, 6:], 16) | _fifth_bits(blocks[:, 2:6])
    return _half(blocks, 0) * (codes.float() - 16)


def _q5_1(blocks: Tensor) -> Tensor:
    codes = _nibbles(blocks[:, 8:], 16) | _fifth_bits(blocks[:, 4:8])
    return _half(blocks, 0) * codes + _half(blocks, 2)


def _q8_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _view(blocks[:, 2:], torch.int8)


def _q4_k(blocks: Tensor) -> Tensor:
    return _scaled(blocks, _nibbles(blocks[:, 16:], 32))


def _q5_k(blocks: Tensor) -> Tensor:
    high, low = blocks[:, 16:48], blocks[:, 48:]
    shifts = torch.arange(8, dtype=torch.uint8)[:, None]
    return _scaled(blocks, _nibbles(low, 32) | ((high[:, None] >> shifts & 1) << 4).flatten(1))


def _scaled(blocks: Tensor, codes: Tensor) -> Tensor:
    """Codes [B, 256] by the scale of their part of 32, and less its minimum: six bits each in twelve bytes."""
    packed = blocks[:, 4:16]
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = torch.cat((first & 63, (third & 15) | (first >> 6 << 4)), dim=1)
    minima = torch.cat((second & 63, (third >> 4) | (second >> 6 << 4)), dim=1)
    numbers = codes.unflatten(1, (8, 32)) * (_half(blocks, 0) * scales)[:, :, None]
    return (numbers - (_half(blocks, 2) * minima)[:, :, None]).flatten(1)


def _q6_k(blocks: Tensor) -> Tensor:
    low = blocks[:, :128].unflatten(1, (2, 1, 64))
    high = blocks[:, 128:192].unflatten(1, (2, 1, 32))
    shifts = torch.tensor([[0], [2], [4], [6]], dtype=torch.uint8)
    codes = torch.cat((low & 15, low >> 4), dim=2).flatten(2) | ((high >> shifts & 3) << 4).flatten(2)
    scales = _half(blocks, 208) * _view(blocks[:, 192:208], torch.int8)
    return ((codes.float() - 32).view(-1, 16, 16) * scales[:, :, None]).flatten(1)


_DECODERS: dict[str, Callable[[Tensor], Tensor]] = {
    "F32": lambda blocks: _float(blocks, torch.float32),
    "F16": lambda blocks: _float(blocks, torch.float16),
    "BF16": lambda blocks: _float(blocks, torch.bfloat16),
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
assert _DECODERS.keys() == BLOCKS.keys()
