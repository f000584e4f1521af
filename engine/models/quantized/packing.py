"""Codes of a weight in oneDNN's order, which oneDNN itself takes four times as long to put them in."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_BLOCK = 64
"""Rows, and columns, of a block."""
_TOGETHER = 4
"""Columns that are multiplied and added up by one instruction, which lie beside each other."""
Pack = Callable[[Tensor], Tensor]


def packed(codes: Tensor) -> Tensor:
    """int8 codes [N, K] in an order of oneDNN's own."""
    pack: Any = torch.ops.onednn.qlinear_prepack
    return pack(codes, None)


class Packing:
    """The same for many weights, a few shapes of them. Blocks of 64 columns by 64 rows, four columns side by side, and
    each row's negative sum after all of them: where oneDNN did otherwise with the second weight of a shape, all of that
    shape are left to it."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, ...], Tensor] = {}
        self._same: dict[tuple[int, ...], bool] = {}

    def __call__(self, codes: Tensor) -> Tensor:
        """As `packed`."""
        shape = tuple(codes.shape)
        if self._same.get(shape):
            held = self._first[shape].clone()
            _bytes(held).copy_(_in_blocks(codes))
            return held
        held = packed(codes)
        if shape in self._first and shape not in self._same:
            whole = all(size % _BLOCK == 0 for size in shape)
            self._same[shape] = whole and torch.equal(_bytes(held), _in_blocks(codes))
        self._first.setdefault(shape, held)
        return held


def _in_blocks(codes: Tensor) -> Tensor:
    rows, columns = codes.shape
    words = codes.view(torch.int32).view(rows // _BLOCK, _BLOCK, columns // _BLOCK, _BLOCK // _TOGETHER)
    sums = codes.sum(dim=1, dtype=torch.int32).neg_()
    return torch.cat((words.permute(0, 2, 3, 1).flatten(), sums)).view(torch.uint8)


def _bytes(held: Tensor) -> Tensor:
    """Those of a packed weight, for as long as it is there."""
    own: Any = torch.ops.mkldnn
    nbytes = own._nbytes(held)
    return torch.frombuffer((ctypes.c_uint8 * nbytes).from_address(own.data_ptr(held)), dtype=torch.uint8)
