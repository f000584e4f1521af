"""Rounds weights to int4 in groups of 32 with zero points, to the nearest, as in the format `pack-quantized` of
compressed-tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.models.checkpoints.packed import INT4_GROUP

_MOST = 15
_SHARES = (1.0, 0.97, 0.94)
"""Shares of a group's range that its codes cover: a narrower one cuts off the ends and is finer in between."""


def quantize_int4(weights: Tensor) -> tuple[dict[str, Tensor], float]:
    """Quantize weights [N, K], K a multiple of 32. Returns codes [N, K/2] with two weights a byte, scales [N, K/32] in
    bfloat16 and zeros [N, K/32], as `int4_numbers` reads them, and the sum of squared errors."""
    groups = weights.float().unflatten(1, (-1, INT4_GROUP))
    # Zero stays zero, so it is in the range of each group.
    low, high = groups.amin(dim=-1).clamp_(max=0), groups.amax(dim=-1).clamp_(min=0)
    best, least = _rounded(groups, low, high, _SHARES[0])
    for share in _SHARES[1:]:
        other, lost = _rounded(groups, low, high, share)
        less = lost < least
        least = torch.where(less, lost, least)
        pairs = zip(other, best, strict=True)
        best = [torch.where(less if own.dim() == 2 else less[..., None], new, own) for new, own in pairs]
    codes, scales, zeros = best
    flat = codes.flatten(1).to(torch.uint8)
    parts = {"codes": flat[:, ::2] | flat[:, 1::2] << 4, "scales": scales, "zeros": zeros.to(torch.uint8)}
    return parts, float(least.sum())


def stored_int4(parts: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file, by their names after the layer's, for N a multiple of 8."""
    codes, zeros = parts["codes"], parts["zeros"]
    shifts = torch.arange(0, 32, 4)
    words = (zeros.long().unflatten(0, (-1, 8)) << shifts[:, None]).sum(dim=1)
    return {
        "weight_packed": codes.view(torch.int32),
        "weight_scale": parts["scales"],
        "weight_zero_point": words.to(torch.uint32).view(torch.int32),
        "weight_shape": torch.tensor([len(codes), 2 * codes.shape[1]]),
    }


def _rounded(groups: Tensor, low: Tensor, high: Tensor, share: float) -> tuple[list[Tensor], Tensor]:
    """Codes [N, K/32, 32], scales and zeros [N, K/32] of groups for a share of their range, and the squared error of
    each."""
    # What codes are counted in is the scale as it is stored.
    scales = ((high - low) * (share / _MOST)).bfloat16()
    scales = torch.where(scales > 0, scales, 1)
    zeros = (low * -share / scales).round_().clamp_(0, _MOST)
    codes = (groups / scales[..., None]).round_().add_(zeros[..., None]).clamp_(0, _MOST)
    lost = ((codes - zeros[..., None]) * scales[..., None] - groups).square_().sum(dim=-1)
    return [codes, scales, zeros], lost
