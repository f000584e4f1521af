"""Weights to int4 in groups of 32 with zero points, rounded to nearest, in the form that compressed-tensors calls
`pack-quantized`."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.checkpoints.packed import INT4_GROUP
from engine.models.quantized.layers import int4_numbers

_MOST = 15
_SHARES = (1.0, 0.97, 0.94)
"""Of a group's range that its codes are spread over: a narrower one cuts its ends off and is finer between."""


def quantize_int4(weights: Tensor) -> dict[str, Tensor]:
    """Of weights [N, K], K a multiple of 32: codes [N, K/2] with two weights a byte, scales [N, K/32] in bfloat16 and
    codes of zero [N, K/32], as `int4_numbers` reads them."""
    best = _rounded(weights, _SHARES[0])
    lost = _lost(weights, best)
    for share in _SHARES[1:]:
        other = _rounded(weights, share)
        less = (own := _lost(weights, other)) < lost
        lost = torch.where(less, own, lost)
        wide = less[..., None].expand(-1, -1, INT4_GROUP // 2).flatten(1)
        best = {name: torch.where(wide if name == "codes" else less, other[name], best[name]) for name in best}
    return best


def stored_int4(parts: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file, by their names behind that of the layer, for N a multiple of 8."""
    codes, zeros = parts["codes"], parts["zeros"]
    shifts = torch.arange(0, 32, 4)
    words = (zeros.long().unflatten(0, (-1, 8)) << shifts[:, None]).sum(dim=1)
    return {
        "weight_packed": codes.view(torch.int32),
        "weight_scale": parts["scales"],
        "weight_zero_point": words.to(torch.uint32).view(torch.int32),
        "weight_shape": torch.tensor([len(codes), 2 * codes.shape[1]]),
    }


def squared_error(weights: Tensor, parts: dict[str, Tensor]) -> float:
    """The sum of squares that weights [N, K] lost."""
    return float(_lost(weights, parts).sum())


def _rounded(weights: Tensor, share: float) -> dict[str, Tensor]:
    groups = weights.float().unflatten(1, (-1, INT4_GROUP))
    # Zero stays zero, so it is in the range of each group.
    low, high = groups.amin(dim=-1).clamp_(max=0), groups.amax(dim=-1).clamp_(min=0)
    # What codes are counted in is the scale as it is stored.
    scales = ((high - low) * (share / _MOST)).bfloat16()
    scales = torch.where(scales > 0, scales, 1)
    zeros = (low * -share / scales).round_().clamp_(0, _MOST)
    codes = (groups / scales[..., None]).round_().add_(zeros[..., None]).clamp_(0, _MOST).flatten(1).to(torch.uint8)
    return {"codes": codes[:, ::2] | codes[:, 1::2] << 4, "scales": scales, "zeros": zeros.to(torch.uint8)}


def _lost(weights: Tensor, parts: dict[str, Tensor]) -> Tensor:
    """The sums of squares [N, K/32] that each group lost."""
    read = int4_numbers(parts["codes"], parts["scales"], parts["zeros"])
    return (weights.float() - read).square_().unflatten(1, (-1, INT4_GROUP)).sum(dim=-1)
