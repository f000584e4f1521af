"""Cross-entropy over a large vocabulary with soft-capped logits, computed without holding all logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK, CHUNK_CUDA = 256, 8192
"""Rows at a time: their logits stay in a processor's cache; a GPU wants more."""


def capped_cross_entropy(hidden: Tensor, table: Tensor, targets: Tensor, cap: float) -> Tensor:
    """Mean of -log softmax(cap * tanh(hidden @ table.T / cap))[target]. hidden [R, E], table [V, E], targets [R].

    Gradients are computed in the forward pass, chunk by chunk. Under autocast the matrices are multiplied in its
    format.
    """
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        hidden, table = hidden.to(dtype), table.to(dtype)
    with torch.autocast(device, enabled=False):
        return _CappedCrossEntropy.apply(hidden, table, targets, cap)


class _CappedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, table: Tensor, targets: Tensor, cap: float) -> Tensor:
        rows = hidden.shape[0]
        hidden_grad = torch.empty_like(hidden)
        table_grad = torch.zeros_like(table, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        chunk = CHUNK_CUDA if hidden.is_cuda else CHUNK
        total = hidden.new_zeros((), dtype=torch.float32)
        for start in range(0, rows, chunk):
            part, target = hidden[start : start + chunk], targets[start : start + chunk, None]
            squashed = (part @ table.T).float().div_(cap).tanh_()
            slope = torch.addcmul(torch.ones_like(squashed), squashed, squashed, value=-1)
            logits = squashed.mul_(cap)
            targeted = logits.gather(1, target)
            # Capped logits can't overflow: no maximum is subtracted, which would cost more than all the rest.
            grad = logits.exp_()
            sums = grad.sum(dim=-1, keepdim=True)
            total += (sums.log() - targeted).sum()
            grad.div_(sums)
            grad.scatter_add_(1, target, grad.new_full((1, 1), -1.0).expand_as(target))
            grad = grad.mul_(slope).to(table.dtype)
            torch.mm(grad, table, out=hidden_grad[start : start + chunk])
            if table_grad is not None:
                table_grad += grad.T @ part
        if table_grad is not None:
            table_grad = table_grad.div_(max(rows, 1)).to(table.dtype)
        ctx.save_for_backward(hidden_grad.div_(max(rows, 1)), table_grad)
        return total / max(rows, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        hidden_grad, table_grad = ctx.saved_tensors
        return hidden_grad * grads[0], None if table_grad is None else table_grad * grads[0], None, None
