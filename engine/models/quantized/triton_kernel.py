"""A Triton kernel for CUDA: rows, ordered by their experts, times weights in 4 bit, which are decoded in the kernel as
they are stored. Imports Triton: import it where weights are on CUDA.

Tiles find their expert and rows by themselves, from the number of rows of each expert, so nothing is asked of the
device before the kernel runs. Of experts without rows nothing is read.
"""

# Torch for processors comes without Triton, and what it compiles is typed in its own way.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.models.checkpoints.packed import INT4_GROUP, NVFP4_GROUP

COLUMNS, INPUTS = 64, 64
"""Sizes of a tile: columns that it computes of each row, inputs that it reads at once. Half of the inputs go into one
product, which takes 16 or more."""
_ROWS = (16, 32, 64)
"""Heights of a tile in rows. Matrix instructions take 16 or more; rows of a tile that no expert fills are computed in
vain."""


@triton.jit
def grouped_product(
    states: tl.tensor,  # [S, K] by expert
    codes: tl.tensor,  # uint8 [X, N, K/2], the first of two weights in the lower half
    scales: tl.tensor,  # [X, N, K/G]; of NVFP4 uint8, as old devices know no numbers in 8 bit
    zeros: tl.tensor,  # uint8 [X, N, K/G], or nothing
    multipliers: tl.tensor,  # float32 [X, P] (NVFP4)
    sizes: tl.tensor,  # rows of each expert [X], or nothing
    out: tl.tensor,  # [S, N]
    rows: tl.tensor,  # S
    outputs: tl.tensor,  # N
    inputs: tl.tensor,  # K
    parts: tl.tensor,  # P
    EXPERTS: tl.constexpr,  # 0: all rows are of one
    GROUP: tl.constexpr,
    NVFP4: tl.constexpr,
    ZEROS: tl.constexpr,
    WHOLE: tl.constexpr,  # whether inputs fill the last tile
    PRODUCT: tl.constexpr,  # the format of products' operands
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    SLOTS: tl.constexpr,  # a power of two, EXPERTS or more
) -> None:
    tile = tl.program_id(0)
    first = tile * BM
    end = rows
    if EXPERTS:
        each = tl.arange(0, SLOTS)
        counts = tl.load(sizes + each, mask=each < EXPERTS, other=0).to(tl.int32)
        tiles = (counts + BM - 1) // BM
        expert = tl.sum((tl.cumsum(tiles, 0) <= tile).to(tl.int32), 0)
        if expert >= EXPERTS:
            return
        before = each < expert
        own = tl.sum(tl.where(before, counts, 0), 0)
        first = own + (tile - tl.sum(tl.where(before, tiles, 0), 0)) * BM
        end = own + tl.sum(tl.where(each == expert, counts, 0), 0)
        far = expert.to(tl.int64) * outputs
        codes += far * (inputs // 2)
        scales += far * (inputs // GROUP)
        zeros += far * (inputs // GROUP)
        multipliers += expert * parts
    m = (first + tl.arange(0, BM)).to(tl.int64)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    in_rows, in_columns = m < end, n < outputs
    # What is beyond the last row or column is computed of the last one, and not stored: no mask in the loop.
    row, column = tl.minimum(m, rows - 1), tl.minimum(n, outputs - 1)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, inputs, BK):
        number, byte = start + tl.arange(0, BK), start // 2 + tl.arange(0, BK // 2)
        group = start // GROUP + tl.arange(0, BK // GROUP)
        packed = _loaded(codes + column[None, :] * (inputs // 2) + byte[:, None], byte[:, None] < inputs // 2, WHOLE)
        packed = packed.to(tl.int32)
        of_groups, there = column[None, :] * (inputs // GROUP) + group[:, None], group[:, None] < inputs // GROUP
        scale = _loaded(scales + of_groups, there, WHOLE)
        if NVFP4:
            scale = _e4m3(scale.to(tl.int32))
            low, high = _e2m1(packed), _e2m1(packed >> 4)
        else:
            scale = scale.to(tl.float32)
            zero = 2.0**23 + 8
            if ZEROS:
                zero = _spread(_counted(_loaded(zeros + of_groups, there, WHOLE).to(tl.int32)), GROUP, BK, BN)
            low, high = _counted(packed) - zero, _counted(packed >> 4) - zero
        scale = _spread(scale, GROUP, BK, BN)
        # Products over even and odd inputs apart: no weights change places.
        given = _loaded(states + row[:, None] * inputs + number[None, :], number[None, :] < inputs, WHOLE).to(PRODUCT)
        even, odd = tl.split(tl.reshape(given, (BM, BK // 2, 2)))
        total = tl.dot(even, (low * scale).to(PRODUCT), total, input_precision="ieee")
        total = tl.dot(odd, (high * scale).to(PRODUCT), total, input_precision="ieee")
    if NVFP4:
        total *= tl.load(multipliers + column // (outputs // parts))[None, :]
    there = in_rows[:, None] & in_columns[None, :]
    total = total.to(out.dtype.element_ty)  # pyright: ignore[reportAttributeAccessIssue]
    tl.store(out + m[:, None] * outputs + n[None, :], total, mask=there)


@triton.jit
def _loaded(places: tl.tensor, there: tl.tensor, WHOLE: tl.constexpr) -> tl.tensor:
    if WHOLE:
        return tl.load(places)
    return tl.load(places, mask=there, other=0)


@triton.jit
def _spread(of_groups: tl.tensor, GROUP: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr) -> tl.tensor:
    """Values of groups for each of their bytes: [BK/2, BN]."""
    each = tl.broadcast_to(of_groups[:, None, :], (BK // GROUP, GROUP // 2, BN))
    return tl.reshape(each, (BK // 2, BN))


@triton.jit
def _counted(code: tl.tensor) -> tl.tensor:
    """2^23 plus the lower half of a byte, which float32 holds in its last bits."""
    return ((code & 15) | 0x4B000000).to(tl.float32, bitcast=True)


@triton.jit
def _e2m1(code: tl.tensor) -> tl.tensor:
    """A sign, two bits of exponent, one of mantissa. Moved to where float32 has its own they are a number 2^126 times
    as small, subnormal where the code is."""
    return (((code & 8) << 28) | ((code & 7) << 22)).to(tl.float32, bitcast=True) * 2.0**126


@triton.jit
def _e4m3(code: tl.tensor) -> tl.tensor:
    """A sign, four bits of exponent, three of mantissa, moved likewise."""
    return (((code & 128) << 24) | ((code & 127) << 20)).to(tl.float32, bitcast=True) * 2.0**120


# As an operator of torch's own it may be in what is compiled or captured, and knows what it returns on no device.
@torch.library.custom_op(
    "dg_lsp::grouped_product",
    mutates_args=(),
    schema="(Tensor states, Tensor codes, Tensor scales, Tensor? zeros, Tensor? multipliers, Tensor? sizes) -> Tensor",
)
def multiply(
    states: Tensor,
    codes: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    multipliers: Tensor | None,
    sizes: Tensor | None,
) -> Tensor:
    """States [S, K] in float32 or bfloat16, `sizes` [X] of them for each expert in order (None: one expert), times the
    experts' weights: [S, N].

    Codes [X, N, K/2] and scales [X, N, K/G], with multipliers [X, P] (NVFP4) or without (int4), as `PackedWeights.put`
    takes them; scales of NVFP4 as bytes.
    """
    states = states.contiguous()
    experts, outputs, half = codes.shape
    rows = len(states)
    out = states.new_empty(rows, outputs)
    if rows == 0:
        return out
    group = INT4_GROUP if multipliers is None else NVFP4_GROUP
    height = _height(rows if sizes is None else -(-rows // experts))
    # Each expert with rows may leave a tile of its own unfilled; where there are fewer, the last tiles end at once.
    tiles = -(-rows // height) if sizes is None else rows // height + min(experts, rows)
    with torch.cuda.device_of(states):
        grouped_product[tiles, -(-outputs // COLUMNS)](
            states,
            codes,
            scales,
            codes if zeros is None else zeros,
            out if multipliers is None else multipliers,
            out if sizes is None else sizes,
            out,
            rows,
            outputs,
            2 * half,
            1 if multipliers is None else multipliers.shape[1],
            EXPERTS=0 if sizes is None else experts,
            GROUP=group,
            NVFP4=multipliers is not None,
            ZEROS=zeros is not None,
            WHOLE=2 * half % INPUTS == 0,
            PRODUCT=tl.bfloat16 if states.dtype == torch.bfloat16 else tl.float32,
            BM=height,
            BN=COLUMNS,
            BK=INPUTS,
            SLOTS=triton.next_power_of_2(experts),
            # The default of today, which Triton warns of.
            enable_fp_fusion=True,  # pyright: ignore[reportCallIssue]
        )
    return out


@multiply.register_fake
def _(states: Tensor, codes: Tensor, *others: Tensor | None) -> Tensor:
    return states.new_empty(len(states), codes.shape[1])


def _height(rows: int) -> int:
    """The height of tiles for so many rows an expert on average."""
    return next((height for height in _ROWS if rows <= height), _ROWS[-1])
