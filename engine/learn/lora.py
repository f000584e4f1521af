"""Low-rank adapters in training: pairs of thin matrices beside frozen layers, whose weights may be packed in 4 or 8
bit.

Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (2021); over packed weights Dettmers et al.,
"QLoRA: Efficient Finetuning of Quantized LLMs" (2023).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from engine.models.adapters.applied import MOST_MERGED_NBYTES
from engine.models.adapters.files import Pair
from engine.models.adapters.low_rank import ADAPTED, LowRankLinear
from engine.models.gemma.network import GemmaNetwork
from engine.models.masked.network import MaskedNetwork
from engine.models.network import Network
from engine.models.products import by_parts
from engine.models.quantized.layers import PackedLinear, PackedWeights, packed_in

RANK, ALPHA = 16, 32.0


class FrozenPacked(PackedWeights):
    """A product with packed weights that lets gradients flow to the layers before it. The weights are unpacked again
    for the backward pass instead of being kept."""

    way = "as the weights it holds, and back by numbers"

    def __init__(self, packed: PackedWeights) -> None:
        super().__init__(packed.shape, packed.dtype)
        self.packed = packed

    def put(self, expert: int, parts: dict[str, Tensor]) -> None:
        self.packed.put(expert, parts)

    def product(self, states: Tensor, expert: int) -> Tensor:
        return _FrozenProduct.apply(states, self.packed, expert)


class _FrozenProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, packed: PackedWeights, expert: int) -> Tensor:
        ctx.packed, ctx.expert = packed, expert
        return packed.product(states, expert)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad: Tensor = grads[0]
        # What the product makes of each unit vector is a column of the weights, however they are laid out.
        columns = ctx.packed.product(torch.eye(ctx.packed.shape[-1], dtype=grad.dtype, device=grad.device), ctx.expert)
        if grad.device.type == "cpu":
            # Few processors multiply fast in bfloat16.
            return (grad.float() @ columns.float().T).to(grad.dtype), None, None
        return grad @ columns.T, None, None


class MergedLinear(LowRankLinear):
    """A layer that multiplies by the sum of base weights and pairs. A training step has so many rows that making the
    sum costs little."""

    def forward(self, hidden: Tensor) -> Tensor:
        frozen: Any = self.base
        weight = torch.addmm(frozen.weight.float(), self.lora_B, self.lora_A, alpha=self.scale)
        return F.linear(hidden, weight.to(hidden.dtype), frozen.bias)


class _Recomputed(Network):
    """A network that keeps each layer's input and attention mask, and computes the rest again in the backward pass."""

    def before(self, layer: Any, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return checkpoint(super().before, layer, hidden, cos, sin, use_reentrant=False)

    def after(self, layer: Any, hidden: Tensor, attended: Tensor, index: int) -> Tensor:
        return checkpoint(super().after, layer, hidden, attended, index, use_reentrant=False)


class RecomputedGemma(_Recomputed, GemmaNetwork):
    pass


class RecomputedMasked(_Recomputed, MaskedNetwork):
    pass


Trainable = GemmaNetwork | MaskedNetwork


def trainable(network: Trainable, *, recompute: bool) -> Trainable:
    """The same layers as a network for training."""
    if isinstance(network, MaskedNetwork):
        return (RecomputedMasked if recompute else MaskedNetwork)(network.module, network.config)
    return (RecomputedGemma if recompute else GemmaNetwork)(network.module)


@contextmanager
def adapted(
    module: nn.Module, rank: int = RANK, alpha: float = ALPHA, seed: int = 0
) -> Generator[dict[str, LowRankLinear]]:
    """Within the block the layers of `module` that are ADAPTED are LowRankLinear, by name, and gradients flow through
    packed weights. Outside it the module is as it was, all weights in place."""
    pairs: dict[str, LowRankLinear] = {}
    undo: list[tuple[nn.Module, str, nn.Module]] = []
    draw = torch.Generator().manual_seed(seed)

    def replace(holder: nn.Module, name: str, part: nn.Module) -> None:
        undo.append((holder, name, getattr(holder, name)))
        setattr(holder, name, part)

    try:
        for path, part in packed_in(module).items():
            replace(*_held(module, path), FrozenPacked(part))
        found = [(path, part) for path, part in module.named_modules() if ADAPTED.search(path)]
        plain_nbytes = sum(part.weight.nbytes for _, part in found if isinstance(part, nn.Linear))
        for path, part in found:
            if isinstance(part, nn.Linear | PackedLinear):
                outputs, inputs = part.weight.shape[-2:]
                a = torch.empty(rank, inputs).uniform_(-1, 1, generator=draw).mul_(1 / math.sqrt(inputs))
                merges = (
                    plain_nbytes <= MOST_MERGED_NBYTES and isinstance(part, nn.Linear) and not by_parts(part.weight)
                )
                kind = MergedLinear if merges else LowRankLinear
                pairs[path] = kind(part, a, torch.zeros(outputs, rank), alpha / rank)
                replace(*_held(module, path), pairs[path])
        yield pairs
    finally:
        for holder, name, part in reversed(undo):
            setattr(holder, name, part)


def pairs_of(parameters: Mapping[str, Tensor]) -> dict[str, Pair]:
    """The pairs of an adapter in bfloat16, from tensors named `LAYER.lora_A` and `LAYER.lora_B`."""
    rounded = {name: each.detach().bfloat16() for name, each in parameters.items()}
    names = sorted({name.rpartition(".")[0] for name in parameters})
    return {name: (rounded[f"{name}.lora_A"], rounded[f"{name}.lora_B"]) for name in names}


def parameters_from(tensors: Mapping[str, Pair]) -> dict[str, Tensor]:
    """The inverse of `pairs_of`."""
    return {
        f"{name}.lora_{side}": each for name, pair in tensors.items() for side, each in zip("AB", pair, strict=True)
    }


def _held(module: nn.Module, path: str) -> tuple[nn.Module, str]:
    above, _, name = path.rpartition(".")
    return module.get_submodule(above), name
