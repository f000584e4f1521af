"""Masked-diffusion coders: Qwen2's or Llama's layers without the causal mask."""

from __future__ import annotations

from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.masked.config import Architecture
from engine.models.network import (
    ALL,
    Activation,
    Attend,
    Embedding,
    FeedForward,
    Linear,
    Network,
    RMSNorm,
    alone,
    feed_forward,
    frequencies,
    joined,
    rotate,
    rotation,
)

SILU = Activation(F.silu, ("swish", ""))


class MaskedModule(nn.Module):
    """The weights, under the names of transformers' Qwen2ForCausalLM and LlamaForCausalLM."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        size = architecture.hidden
        self._tied = architecture.tied
        self.model: Any = nn.Module()
        self.model.embed_tokens = Embedding(architecture.vocab, size)
        self.model.layers = nn.ModuleList(MaskedLayer(architecture) for _ in range(architecture.layers))
        self.model.norm = RMSNorm(size, architecture.norm_eps)
        self.lm_head: Any = Linear(size, architecture.vocab, bias=False)
        self.tie_weights()

    def tie_weights(self) -> None:
        """Let the head be the embedding table, where config.json says so."""
        if self._tied and isinstance(self.lm_head, nn.Linear):
            self.lm_head.weight = self.model.embed_tokens.weight


class MaskedLayer(nn.Module):
    """Attention, then a gated block."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        size, width = architecture.hidden, architecture.kv_heads * architecture.head_size
        biased = architecture.kind == "qwen2"
        self.self_attn: Any = nn.Module()
        self.self_attn.q_proj = Linear(size, size, biased)
        self.self_attn.k_proj, self.self_attn.v_proj = Linear(size, width, biased), Linear(size, width, biased)
        self.self_attn.o_proj = Linear(size, size, bias=False)
        self.mlp = FeedForward(size, architecture.intermediate)
        self.input_layernorm = RMSNorm(size, architecture.norm_eps)
        self.post_attention_layernorm = RMSNorm(size, architecture.norm_eps)


class MaskedNetwork(Network):
    """One checkpoint's layers and head."""

    def __init__(self, module: Any, architecture: Architecture) -> None:
        """`module`: a MaskedModule, or transformers' Qwen2ForCausalLM or LlamaForCausalLM."""
        super().__init__(module, module.model.layers, module.model.embed_tokens)
        self.config = architecture
        radians = frequencies(architecture.head_size, architecture.rope_theta, factor=architecture.rope_factor)
        self._radians = radians.to(self.device)

    def over(self, module: Any) -> Self:
        return type(self)(module, self.config)

    def head_size(self, index: int) -> int:
        return self.config.head_size

    def run(self, ids: Tensor, positions: Tensor, attend: Attend | None = None, wanted: Tensor | None = None) -> Tensor:
        """Hidden states [B, T, E] of ids [B, T] at positions [B, T], after the last norm; without `attend` all of a row
        sees all of it. [B, W, E] of the places `wanted` [W] alone, where these are all that is asked for."""
        attend = attend or (lambda _, query, key, value: self.attention(query, key, value))
        return self.run_embedded(self.embeddings(ids), positions, attend, wanted)

    def run_embedded(self, hidden: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None = None) -> Tensor:
        """The same of embeddings [B, T, E], which need not be those of tokens."""
        turned = rotation(positions, self._radians, torch.float32)
        hidden = self.through(self.layers, hidden, lambda _: turned, attend, wanted)
        return self._norm(self.module.model.norm, hidden)

    def logits(self, hidden: Tensor, tokens: slice | Tensor = ALL) -> Tensor:
        """Float32 logits [..., W] of hidden states [..., E], of all tokens or of some."""
        return self.of_head(hidden, tokens)

    def before(self, layer: Any, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        size, heads, kv_heads = self.config.head_size, self.config.heads, self.config.kv_heads
        product = self.projected(layer, self._norm(layer.input_layernorm, hidden)).unflatten(-1, (-1, size))
        # Queries and keys lie side by side and are turned together.
        turned, value = product.split([heads + kv_heads, kv_heads], dim=2)
        query, key = rotate(turned, cos, sin).split([heads, kv_heads], dim=2)
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)

    def projected(self, layer: Any, hidden: Tensor) -> Tensor:
        """Queries, keys and values [B, T, (H + 2 K) D] of normed hidden states, side by side."""
        block = layer.self_attn
        return joined((block.q_proj, block.k_proj, block.v_proj), hidden)

    def after(self, layer: Any, hidden: Tensor, attended: Tensor, index: int) -> Tensor:
        hidden = hidden + alone(layer.self_attn.o_proj, attended.transpose(1, 2).flatten(2))
        return hidden + feed_forward(layer.mlp, self._norm(layer.post_attention_layernorm, hidden), SILU)

    def _norm(self, module: Any, hidden: Tensor) -> Tensor:
        """RMS norm in float32, scaled in the format of the weights, as the references do."""
        if module.weight.dtype == hidden.dtype == torch.float32:
            return F.rms_norm(hidden, hidden.shape[-1:], module.weight, self.config.norm_eps)
        wide = F.rms_norm(hidden.float(), hidden.shape[-1:], None, self.config.norm_eps)
        return module.weight * wide.type_as(hidden)
