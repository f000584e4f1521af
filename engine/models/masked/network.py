"""The forward pass of masked-diffusion coders over transformers' modules: same parameters, no causal mask, our caches.

Who attends to what is not decided here: every layer calls an `Attend`, which rotates, and owns caches and masks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, queries [B, H, T, D], keys and values [B, K, T, D]), none rotated -> [B, H, T, D]; H a multiple of K."""


class Network:
    """One checkpoint's layers and head."""

    def __init__(self, module: Any, rope_theta: float) -> None:
        """`module`: transformers' Qwen2ForCausalLM or LlamaForCausalLM."""
        self.module = module
        self.layers = module.model.layers
        self.config = module.config
        self.head_size: int = self.config.hidden_size // self.config.num_attention_heads
        self._rope_theta = rope_theta

    @property
    def device(self) -> torch.device:
        """Where embeddings live, and so where ids must be."""
        return self.module.model.embed_tokens.weight.device

    @property
    def devices(self) -> list[torch.device]:
        """Where each layer is."""
        return [layer.input_layernorm.weight.device for layer in self.layers]

    @property
    def layer_nbytes(self) -> int:
        """Bytes of one token's keys and values in one layer."""
        dtype = self.layers[0].self_attn.k_proj.weight.dtype
        return 2 * self.config.num_key_value_heads * self.head_size * dtype.itemsize

    def run(self, ids: Tensor, attend: Attend) -> Tensor:
        """Hidden states [B, T, E] of ids [B, T], after the last norm."""
        hidden = self.module.model.embed_tokens(ids)
        device = hidden.device
        for index, layer in enumerate(self.layers):
            # The layers of a model that does not fit one device lie on several; elsewhere this move does nothing.
            hidden = hidden.to(layer.input_layernorm.weight.device)
            hidden = _layer(layer, hidden, index, attend, self.head_size)
        return norm(self.module.model.norm, hidden.to(device))

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [..., V] of hidden states [..., E]."""
        return self.module.lm_head(hidden).float()

    def rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [B, 1, T, D] of positions [B, T], in float32."""
        steps = torch.arange(0, self.head_size, 2, device=positions.device).float() / self.head_size
        angles = positions[:, None, :, None].float() * self._rope_theta**-steps
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()


def rotate(states: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """States [B, H, T, D] turned to their positions."""
    cos, sin = (part.to(states.device) for part in rotation)
    wide = states.float()
    first, second = wide.chunk(2, dim=-1)
    return (wide * cos + torch.cat((-second, first), dim=-1) * sin).type_as(states)


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Scaled by the root of the head size. Shapes as in `Attend`; bool mask [B, 1, 1, S], True attends."""
    batch, heads, width, size = query.shape
    groups = heads // key.shape[1]
    # Heads that share keys become more queries of one head: nothing is copied.
    folded = query.reshape(batch, key.shape[1], groups * width, size)
    return F.scaled_dot_product_attention(folded, key, value, attn_mask=mask).reshape(batch, heads, width, size)


def norm(module: Any, hidden: Tensor) -> Tensor:
    """RMS norm in float32, scaled in the format of the weights, as the references do."""
    wide = hidden.float()
    return module.weight * F.rms_norm(wide, wide.shape[-1:], None, module.variance_epsilon).type_as(hidden)


def _layer(layer: Any, hidden: Tensor, index: int, attend: Attend, head_size: int) -> Tensor:
    block = layer.self_attn
    shape = (*hidden.shape[:-1], -1, head_size)
    normed = norm(layer.input_layernorm, hidden)
    query, key, value = (
        projected(normed).view(shape).transpose(1, 2) for projected in (block.q_proj, block.k_proj, block.v_proj)
    )
    attended = attend(index, query, key, value)
    hidden = hidden + block.o_proj(attended.transpose(1, 2).flatten(2))
    return hidden + layer.mlp(norm(layer.post_attention_layernorm, hidden))
