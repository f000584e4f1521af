"""DiffusionGemma: an encoder that reads a context causally, and a decoder over canvases with the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.gemma.config import SLIDING, GemmaConfig
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
    rotate,
    rotation,
    side_by_side,
)
from engine.models.products import linear
from engine.models.quantized.layers import PackedWeights

_GELU_CUBIC, _GELU_SCALE = 0.044715, 2 * math.sqrt(2 / math.pi)
"""Constants of GELU's approximation by tanh."""


def _gelu(gate: Tensor) -> Tensor:
    if gate.device.type != "cpu" or gate.dtype != torch.float32:
        return F.gelu(gate, approximate="tanh")
    # Likewise, in half the time.
    cubic = torch.addcmul(gate, gate.square(), gate, value=_GELU_CUBIC)
    return cubic.mul_(_GELU_SCALE).sigmoid_() * gate


GELU = Activation(_gelu, ("gelu", "tanh"))


class GemmaModule(nn.Module):
    """The weights, under the names of transformers' DiffusionGemmaForBlockDiffusion, without vision parts."""

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self.config = config
        self.final_logit_softcapping = config.final_logit_softcapping
        decoder: Any = nn.Module()
        text: Any = nn.Module()
        self.model: Any = nn.Module()
        decoder.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        decoder.layers = nn.ModuleList(GemmaLayer(config, index) for index in range(config.num_hidden_layers))
        decoder.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        decoder.self_conditioning = FeedForward(config.hidden_size, config.intermediate_size)
        decoder.self_conditioning.pre_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        text.embed_tokens, text.norm = decoder.embed_tokens, decoder.norm
        text.layers = nn.ModuleList(EncoderLayer(layer) for layer in decoder.layers)
        self.model.decoder, self.model.encoder = decoder, nn.Module()
        self.model.encoder.language_model = text
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False)
        self.tie_weights()

    def tie_weights(self) -> None:
        """Let the head be the embedding table, where config.json says so."""
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.model.decoder.embed_tokens.weight


class GemmaLayer(nn.Module):
    """Attention, then a gated block beside experts."""

    def __init__(self, config: GemmaConfig, index: int) -> None:
        super().__init__()
        size, eps = config.hidden_size, config.rms_norm_eps
        self.self_attn = GemmaAttention(config, index)
        self.mlp = FeedForward(size, config.intermediate_size)
        self.router: Any = nn.Module()
        self.experts: Any = nn.Module()
        self.router.proj = Linear(size, config.num_experts, bias=False)
        self.router.scale = nn.Parameter(torch.empty(size))
        self.router.per_expert_scale = nn.Parameter(torch.empty(config.num_experts))
        self.experts.gate_up_proj = nn.Parameter(
            torch.empty(config.num_experts, 2 * config.moe_intermediate_size, size)
        )
        self.experts.down_proj = nn.Parameter(torch.empty(config.num_experts, size, config.moe_intermediate_size))
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(size, eps), RMSNorm(size, eps)
        self.pre_feedforward_layernorm, self.post_feedforward_layernorm = RMSNorm(size, eps), RMSNorm(size, eps)
        self.pre_feedforward_layernorm_2 = RMSNorm(size, eps)
        self.post_feedforward_layernorm_1, self.post_feedforward_layernorm_2 = RMSNorm(size, eps), RMSNorm(size, eps)
        self.layer_scalar = nn.Buffer(torch.empty(1))


class GemmaAttention(nn.Module):
    """Projections and norms of one layer. With full attention the values are the keys before their norm."""

    def __init__(self, config: GemmaConfig, index: int) -> None:
        super().__init__()
        size, bias = config.hidden_size, config.attention_bias
        self.head_dim, kv_heads = config.heads[index]
        self.q_proj = Linear(size, config.num_attention_heads * self.head_dim, bias)
        self.k_proj = Linear(size, kv_heads * self.head_dim, bias)
        sliding = config.layer_types[index] == SLIDING
        self.v_proj = Linear(size, kv_heads * self.head_dim, bias) if sliding else None
        self.o_proj = Linear(config.num_attention_heads * self.head_dim, size, bias)
        self.q_norm, self.k_norm = (
            RMSNorm(self.head_dim, config.rms_norm_eps),
            RMSNorm(self.head_dim, config.rms_norm_eps),
        )


class EncoderLayer(nn.Module):
    """A decoder's layer with its own scale."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        for name, part in layer.named_children():
            self.add_module(name, part)
        self.layer_scalar = nn.Buffer(torch.empty(1))


class GemmaNetwork(Network):
    """Encoder and decoder of one checkpoint; they share their weights."""

    scale = 1.0  # queries and keys are normed

    def __init__(self, module: Any, compiled: bool = False) -> None:
        """`module`: a GemmaModule, or transformers' DiffusionGemmaForBlockDiffusion."""
        self.encoder, self.decoder = module.model.encoder.language_model, module.model.decoder
        super().__init__(module, self.decoder.layers, self.decoder.embed_tokens)
        self.config: Any = getattr(module.config, "text_config", module.config)
        self.dense = [_is_dense(layer) for layer in self.layers]
        self.fused = compiled
        self._radians: dict[str, Tensor] = {}
        for kind, layer in zip(self.config.layer_types, self.layers, strict=True):
            said = self.config.rope_parameters[kind]
            share, factor = said.get("partial_rotary_factor", 1.0), said.get("factor", 1.0)
            size = layer.self_attn.head_dim
            self._radians[kind] = frequencies(size, said["rope_theta"], share, factor).to(self.device)

    def over(self, module: Any) -> Self:
        return type(self)(module, self.fused)

    @property
    def conditions_by(self) -> Tensor:
        return self.embeddings.weight

    def gated_blocks(self) -> list[Any]:
        return [*super().gated_blocks(), self.decoder.self_conditioning]

    def sliding(self, index: int) -> bool:
        """Whether layer `index` sees a window of the context only."""
        return self.config.layer_types[index] == SLIDING

    def head_size(self, index: int) -> int:
        return self.layers[index].self_attn.head_dim

    def seen(self, index: int, length: int) -> int:
        return min(self.config.sliding_window - 1, length) if self.sliding(index) else length

    def encode(self, ids: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None = None) -> Tensor:
        """Hidden states [B, T, E] of context ids [B, T] at positions [B, T], after the last norm.

        [B, W, E] of the places `wanted` [W] alone, where these are all that is asked for.
        """
        return self._run(self.encoder, self.embed(ids), positions, attend, wanted)

    def decode(
        self, ids: Tensor, positions: Tensor, attend: Attend, signal: Tensor | None, wanted: Tensor | None = None
    ) -> Tensor:
        """Hidden states [B, L, E] of canvas ids [B, L], `wanted` as above.

        `signal` [B, L, E]: soft embeddings of the last logits.
        """
        hidden, block = self.embed(ids), self.decoder.self_conditioning
        # The conditioning block maps a zero signal to zero: only its last norm remains.
        if signal is not None:
            hidden = hidden + feed_forward(block, norm(block.pre_norm, signal), GELU)
        return self._run(self.decoder, _normed(hidden, None, block.pre_norm.eps), positions, attend, wanted)

    def logits(self, hidden: Tensor, tokens: slice | Tensor = ALL) -> Tensor:
        """Soft-capped float32 logits [..., W] of hidden states [..., E], for all tokens or some."""
        cap = self.module.final_logit_softcapping
        logits = self.of_head(hidden, tokens)
        if logits.device.type != "cpu":
            return logits.div_(cap).tanh_().mul_(cap)
        # The same, as tanh(x) is 2 sigmoid(2x) - 1, in a sixth of the time that torch's own takes there.
        return logits.mul_(2 / cap).sigmoid_().mul_(2 * cap).sub_(cap)

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embeddings [..., E] of ids [...]."""
        return self.scaled(F.embedding(ids, self.embeddings.weight))

    def soft_embeddings(self, logits: Tensor) -> Tensor:
        """The self-conditioning signal [..., E]: token embeddings averaged by softmax(logits [..., V])."""
        table = self.embeddings.weight
        return self.scaled(logits.softmax(dim=-1, dtype=torch.float32).to(table.dtype) @ table)

    def scaled(self, embeddings: Tensor) -> Tensor:
        """Embeddings [..., E], or averages of them, scaled for the layers."""
        # Rounded as the weights are, which was so when the model was trained.
        return embeddings * float(torch.tensor(self.config.hidden_size**0.5).to(self.embeddings.weight.dtype))

    def before(self, layer: Any, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (_fused_before() if self.fused else before_attention)(layer, hidden, cos, sin)

    def after(self, layer: Any, hidden: Tensor, attended: Tensor, index: int) -> Tensor:
        experts = 0 if self.dense[index] else self.config.top_k_experts
        return (_fused_after() if self.fused else after_attention)(layer, hidden, attended, experts)

    def _run(self, stack: Any, hidden: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None) -> Tensor:
        rotations = {kind: rotation(positions, radians, hidden.dtype) for kind, radians in self._radians.items()}
        kinds = self.config.layer_types
        hidden = self.through(stack.layers, hidden, lambda index: rotations[kinds[index]], attend, wanted)
        return norm(stack.norm, hidden)


def norm(module: Any, hidden: Tensor) -> Tensor:
    """RMS norm in float32, as the reference does."""
    return _normed(hidden, module.weight.float(), module.eps)


def _normed(hidden: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return F.rms_norm(hidden.float(), hidden.shape[-1:], weight, eps).type_as(hidden)


def before_attention(layer: Any, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of one layer; where it is fused, this function is compiled."""
    block = layer.self_attn
    shape = (*hidden.shape[:-1], -1, block.head_dim)
    hidden = norm(layer.input_layernorm, hidden)
    parts = (block.q_proj, block.k_proj) if block.v_proj is None else (block.q_proj, block.k_proj, block.v_proj)
    query, key, *values = (part.view(shape) for part in side_by_side(parts, hidden))
    query = norm(block.q_norm, query)
    value = _normed(values[0] if values else key, None, block.k_norm.eps)
    key = norm(block.k_norm, key)
    return rotate(query, cos, sin).transpose(1, 2), rotate(key, cos, sin).transpose(1, 2), value.transpose(1, 2)


def after_attention(layer: Any, hidden: Tensor, attended: Tensor, experts: int) -> Tensor:
    """The layer's output; a token goes through so many experts. Where it is fused, this function is compiled."""
    change = alone(layer.self_attn.o_proj, attended.transpose(1, 2).flatten(2))
    hidden = hidden + norm(layer.post_attention_layernorm, change)
    mlp = feed_forward(layer.mlp, norm(layer.pre_feedforward_layernorm, hidden), GELU)
    change = norm(layer.post_feedforward_layernorm_1, mlp)
    if experts:
        mixed = _mixed(layer, hidden.flatten(0, -2), experts).view_as(hidden)
        change = change + norm(layer.post_feedforward_layernorm_2, mixed)
    hidden = hidden + norm(layer.post_feedforward_layernorm, change)
    return hidden * layer.layer_scalar


@cache
def _fused_before() -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    return torch.compile(before_attention, dynamic=False)


@cache
def _fused_after() -> Callable[..., Tensor]:
    return torch.compile(after_attention, dynamic=False)


def _mixed(layer: Any, hidden: Tensor, count: int) -> Tensor:
    """The output of the `count` likeliest experts of each token for hidden states [N, E], by their shares."""
    router, experts = layer.router, layer.experts
    scores = router.proj(_normed(hidden, None, layer.input_layernorm.eps) * router.scale * hidden.shape[-1] ** -0.5)
    shares, chosen = scores.softmax(dim=-1, dtype=torch.float32).topk(count, dim=-1)
    shares = shares / shares.sum(dim=-1, keepdim=True) * router.per_expert_scale[chosen]
    # Sorted by expert, so that each computes its tokens at once.
    each = chosen.flatten()
    order = each.argsort()
    tokens = order // count
    # Counted without `bincount`, which asks the device for the largest.
    sizes = each.new_zeros(len(router.per_expert_scale)).scatter_add_(0, each, torch.ones_like(each))
    states = norm(layer.pre_feedforward_layernorm_2, hidden)[tokens]
    gate, up = _grouped(states, experts.gate_up_proj, sizes).chunk(2, dim=-1)
    out = _grouped(_gelu(gate) * up, experts.down_proj, sizes) * shares.flatten()[order, None]
    return out.new_zeros(hidden.shape).index_add_(0, tokens, out).type_as(hidden)


def _grouped(states: Tensor, weights: Tensor | PackedWeights, sizes: Tensor) -> Tensor:
    """States [S, I], `sizes` [X] of them for each expert, times the experts' weights [X, O, I]."""
    if isinstance(weights, PackedWeights):
        return weights.grouped(states, sizes)
    if states.device.type == "cuda":
        grouped: Any = getattr(F, "grouped_mm", None) or torch._grouped_mm  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
        return grouped(states, weights.transpose(1, 2), offs=sizes.cumsum(0, dtype=torch.int32))
    parts = zip(states.split(sizes.tolist()), weights, strict=True)
    return torch.cat([linear(part, weight) for part, weight in parts if len(part)])


def _is_dense(layer: Any) -> bool:
    """Whether a layer has no experts: then it is written with one tiny expert whose output norm is zero."""
    weight: nn.Parameter = layer.post_feedforward_layernorm_2.weight
    return weight.device.type != "meta" and not bool(weight.any())
