"""A pair of thin matrices beside a frozen layer, in training and in serving.

Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (2021).
"""

from __future__ import annotations

import re
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

ADAPTED = re.compile(r"\.layers\.[0-9]+\.(self_attn|mlp)\.[a-z]+_proj$")
"""The layers with pairs: those of attention and dense blocks. Experts, their router and self-conditioning have none:
each of them sees too little of a small repository to learn from it."""


class LowRankLinear(nn.Module):
    """A frozen linear layer with weights W and a pair beside it: W x + scale * B (A x)."""

    def __init__(self, base: nn.Module, a: Tensor, b: Tensor, scale: float) -> None:
        """a [R, K], b [N, R]. They are kept in float32 whatever the base: a step of training is too small for the
        digits of a bfloat16."""
        super().__init__()
        self.base, self.scale = base, scale
        device = next((each.device for each in (*base.parameters(), *base.buffers())), a.device)
        self.lora_A = nn.Parameter(a.to(device).float())
        self.lora_B = nn.Parameter(b.to(device).float())

    @property
    def weight(self) -> Any:
        """The weights of the frozen layer, whose shape and format are those of the whole."""
        return self.base.weight

    def forward(self, hidden: Tensor) -> Tensor:
        beside = F.linear(F.linear(hidden.float(), self.lora_A), self.lora_B)
        return self.base(hidden) + (self.scale * beside).to(hidden.dtype)
