"""The shapes of the trained models, as configurations of the released architecture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, DiffusionGemmaTextConfig

from engine.lab.baselines.generate import no_vision

BRANCH = 0.2
"""Initial root mean square of what a layer's attention or feed-forward part adds."""
_ADDING = ("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")
"""The norms that scale what a layer adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes in features and tokens; sliding and full layers have the same head size."""

    vocab: int = 6144
    hidden: int = 384
    intermediate: int = 1024
    layers: int = 6
    heads: int = 6
    kv_heads: int = 2
    head_size: int = 64
    window: int = 512
    """Tokens that sliding layers see. If they are fewer than a served context, only the last layer sees a suffix that
    is far away."""
    full_every: int = 6
    """Every so-many-th layer sees everything; its attention is what a keystroke costs in a long context."""
    canvas: int = 96
    experts: int = 0
    """Experts beside the dense block of each layer; 0: the block alone."""
    chosen: int = 2
    """Experts that each token goes through."""
    expert_size: int = 32
    """Features of an expert."""

    def full(self, layer: int) -> bool:
        """Whether the layer with this index sees everything."""
        return layer % self.full_every == self.full_every - 1


def new_model(shape: Shape, seed: int) -> DiffusionGemmaForBlockDiffusion:
    """A freshly initialised model of `shape`, in float32.

    What a layer adds begins small. Otherwise the architecture's norms after attention and feed-forward would make each
    addition outweigh the embeddings two and a half times before anything is learnt.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = DiffusionGemmaForBlockDiffusion(new_config(shape))
    for layer in model.model.decoder.layers:
        if not shape.experts:
            torch.nn.init.zeros_(layer.post_feedforward_layernorm_2.weight)
        for name in _ADDING:
            torch.nn.init.constant_(layer.get_parameter(name), BRANCH)
    return model


def new_config(shape: Shape) -> DiffusionGemmaConfig:
    """The configuration of the released architecture in `shape`.

    The architecture has experts and a vision tower. Where a shape has no experts, a tiny one behind a norm of zeros
    adds nothing; the vision tower is as small as the classes allow. Neither is trained.
    """
    full_layers: dict[str, Any] = {"num_global_key_value_heads": shape.kv_heads, "global_head_dim": shape.head_size}
    text = DiffusionGemmaTextConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        sliding_window=shape.window,
        layer_types=[("sliding", "full")[shape.full(layer)] + "_attention" for layer in range(shape.layers)],
        num_experts=shape.experts or 1,
        top_k_experts=shape.chosen if shape.experts else 1,
        # The grouped matrix products of transformers want strides of 16 bytes.
        moe_intermediate_size=shape.expert_size if shape.experts else 8,
        max_position_embeddings=8192,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
        **full_layers,
    )
    return DiffusionGemmaConfig(text_config=text, vision_config=no_vision(), canvas_length=shape.canvas)


def trained_parameters(model: Any) -> dict[str, torch.nn.Parameter]:
    """The decoder's parameters without a stand-in expert; the encoder and the head are tied to them."""
    skip = ("router", "experts", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    if model.config.text_config.num_experts > 1:
        skip = ()
    return {
        name: parameter
        for name, parameter in model.model.decoder.named_parameters()
        if not any(part in skip for part in name.split("."))
    }
