"""DiffusionGemma's forward pass over transformers' modules: the same parameters, our attention and our caches.

`transformers.DiffusionGemmaForBlockDiffusion` holds the weights and stays the reference (tests assert equal
logits). Serving and training run this pass instead, because both need what the reference can't give: ragged
batches, many canvases over one context, and keys and values that survive a cropped context.

Who attends to what is not decided here: every layer calls an `Attend`, which owns caches and masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.activations import GELUTanh

_GELU_CUBIC, _GELU_SCALE = 0.044715, 2 * math.sqrt(2 / math.pi)
"""Of the approximation by tanh."""

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer index, queries [B, H, T, D], keys [B, K, T, D], values [B, K, T, D]) -> [B, H, T, D], H a multiple of K."""


class Network:
    """Encoder and decoder of one checkpoint; they share their weights."""

    def __init__(self, module: Any, compiled: bool = False) -> None:
        self.module = module
        self.before = torch.compile(before_attention, dynamic=False) if compiled else before_attention
        self.after = torch.compile(after_attention, dynamic=False) if compiled else after_attention
        self.encoder = module.model.encoder.language_model
        self.decoder = module.model.decoder
        self.config = module.config.text_config
        self.dense = [_is_dense(layer) for layer in self.decoder.layers]

    @property
    def device(self) -> torch.device:
        """Where embeddings live, and so where ids must be."""
        return self.decoder.embed_tokens.weight.device

    def sliding(self, index: int) -> bool:
        """Whether layer `index` sees a window of the context only."""
        return self.config.layer_types[index] == "sliding_attention"

    def encode(self, ids: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None = None) -> Tensor:
        """Hidden states [B, T, E] of context ids [B, T] at positions [B, T], after the last norm.

        [B, W, E] of the places `wanted` [W] alone, where these are all that is asked for.
        """
        return self._run(self.encoder, self.encoder.embed_tokens(ids), positions, attend, wanted)

    def decode(
        self, ids: Tensor, positions: Tensor, attend: Attend, signal: Tensor | None, wanted: Tensor | None = None
    ) -> Tensor:
        """Hidden states [B, L, E] of canvas ids [B, L], `wanted` as above.

        `signal` [B, L, E]: soft embeddings of the last logits.
        """
        embeddings = self.decoder.embed_tokens(ids)
        if signal is None:
            # The conditioning block maps a zero signal to zero: only its last norm remains.
            embeddings = norm(self.decoder.self_conditioning.post_norm, embeddings)
        else:
            block = self.decoder.self_conditioning
            embeddings = norm(block.post_norm, embeddings + feed_forward(block, norm(block.pre_norm, signal)))
        return self._run(self.decoder, embeddings, positions, attend, wanted)

    def logits(self, hidden: Tensor) -> Tensor:
        """Soft-capped float32 logits [..., V] of hidden states [..., E]."""
        cap = self.module.final_logit_softcapping
        return self.module.lm_head(hidden).float().div_(cap).tanh_() * cap

    def soft_embeddings(self, logits: Tensor) -> Tensor:
        """The self-conditioning signal [..., E]: token embeddings averaged by softmax(logits [..., V])."""
        table = self.decoder.embed_tokens
        weights = logits.softmax(dim=-1, dtype=torch.float32).to(table.weight.dtype)
        return (weights @ table.weight) * table.embed_scale.to(table.weight.dtype)

    def _run(self, stack: Any, hidden: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None) -> Tensor:
        rotations = {kind: _rotations(*stack.rotary_emb(hidden, positions, kind)) for kind in stack.unique_layer_types}
        device = hidden.device
        for index, layer in enumerate(stack.layers):
            # The layers of a model that does not fit one device lie on several; elsewhere these moves do nothing.
            place = layer.layer_scalar.device
            hidden = hidden.to(place)
            rotation = [part.to(place) for part in rotations[self.config.layer_types[index]]]
            attended = attend(index, *self.before(layer, hidden, *rotation))
            if wanted is not None and index == len(stack.layers) - 1:
                # No further layer looks at the others.
                hidden, attended = (
                    part.index_select(dim, wanted.to(place)) for part, dim in ((hidden, 1), (attended, 2))
                )
            hidden = self.after(layer, hidden, attended, self.dense[index])
        return norm(stack.norm, hidden.to(device))


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Scaled by 1, as queries and keys are normed. Shapes as in `Attend`; bool mask [B or 1, 1, T, S], True attends."""
    batch, heads, width, size = query.shape
    groups = heads // key.shape[1]
    # Heads that share keys become more queries of one head: nothing is copied.
    folded = query.reshape(batch, key.shape[1], groups * width, size)
    if mask is not None and groups > 1:
        mask = mask.repeat(1, 1, groups, 1)
    out = F.scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=1.0)
    return out.reshape(batch, heads, width, size)


def norm(module: Any, hidden: Tensor) -> Tensor:
    """RMS norm in float32, as the reference does."""
    weight = module.weight.float() if module.with_scale else None
    return F.rms_norm(hidden.float(), hidden.shape[-1:], weight, module.eps).type_as(hidden)


def before_attention(layer: Any, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [B, H, T, D], keys and values [B, K, T, D] of one layer; training compiles this function."""
    block = layer.self_attn
    shape = (*hidden.shape[:-1], -1, block.head_dim)
    hidden = norm(layer.input_layernorm, hidden)
    query = norm(block.q_norm, block.q_proj(hidden).view(shape))
    key = block.k_proj(hidden).view(shape)
    value = norm(block.v_norm, block.v_proj(hidden).view(shape) if block.v_proj is not None else key)
    key = norm(block.k_norm, key)
    return _rotate(query, cos, sin).transpose(1, 2), _rotate(key, cos, sin).transpose(1, 2), value.transpose(1, 2)


def after_attention(layer: Any, hidden: Tensor, attended: Tensor, dense: bool) -> Tensor:
    """The layer's output [B, T, E] from its input and its attention [B, H, T, D]; training compiles this function."""
    change = layer.self_attn.o_proj(attended.transpose(1, 2).flatten(2))
    hidden = hidden + norm(layer.post_attention_layernorm, change)
    mlp = feed_forward(layer.mlp, norm(layer.pre_feedforward_layernorm, hidden))
    change = norm(layer.post_feedforward_layernorm_1, mlp)
    if not dense:
        change = change + _experts(layer, hidden)
    hidden = hidden + norm(layer.post_feedforward_layernorm, change)
    return hidden * layer.layer_scalar


def feed_forward(block: Any, hidden: Tensor) -> Tensor:
    """A gated block of three matrices, [..., E] to [..., E]."""
    gate = block.gate_proj(hidden)
    if gate.device.type == "cpu" and gate.dtype == torch.float32 and isinstance(block.act_fn, GELUTanh):
        # The same, as tanh(x) is 2 sigmoid(2x) - 1, in half the time that torch's own takes there.
        cubic = torch.addcmul(gate, gate.square(), gate, value=_GELU_CUBIC)
        return block.down_proj(cubic.mul_(_GELU_SCALE).sigmoid_() * gate * block.up_proj(hidden))
    return block.down_proj(block.act_fn(gate) * block.up_proj(hidden))


def _rotations(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """[B, T, 1, D] each, the sines with the sign of the half that they are multiplied with."""
    first, second = sin.chunk(2, dim=-1)
    return cos.unsqueeze(2), torch.cat((-first, second), dim=-1).unsqueeze(2)


def _rotate(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.addcmul(states * cos, states.roll(states.shape[-1] // 2, dims=-1), sin)


def _experts(layer: Any, hidden: Tensor) -> Tensor:
    flat = hidden.reshape(-1, hidden.shape[-1])
    _, weights, chosen = layer.router(flat)
    out = layer.experts(norm(layer.pre_feedforward_layernorm_2, flat), chosen, weights)
    return norm(layer.post_feedforward_layernorm_2, out.reshape(hidden.shape))


def _is_dense(layer: Any) -> bool:
    """A checkpoint without experts is written as one tiny expert whose output norm is zero: it adds exactly nothing."""
    weight: nn.Parameter = layer.post_feedforward_layernorm_2.weight
    return weight.device.type != "meta" and not bool(weight.any())
