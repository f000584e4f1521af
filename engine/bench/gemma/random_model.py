"""Models of this family in any shape with random weights: speed can be measured without a checkpoint."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import init_empty_weights
from torch import nn
from transformers import DiffusionGemmaConfig, DiffusionGemmaTextConfig

from engine.baselines.released_class import TextModel, no_vision
from engine.bench.numbered import NumberedPrompt
from engine.bench.random_weights import check_room, layers_asked, made_in, place_of, randomise
from engine.checkpoints.placement import GPU_DTYPE, cpu_dtype
from engine.core.names import Device
from engine.loader.catalog import BUNDLED_PATH
from engine.models.base import ModelInfo, Noise
from engine.models.gemma.model import RELEASED, DiffusionGemma
from engine.models.gemma.network import GemmaNetwork

_RELEASED_LAYERS, _FULL_EVERY = 30, 6
_CONTEXT = 4096


def random_model(shape: str, device: Device, seed: int) -> DiffusionGemma:
    """A model named by one of the family's shapes. Raises BadInput for too many layers, ModelError without memory."""
    config = _config(shape)
    place = place_of(device)
    with torch.device("meta"):
        sketch: Any = TextModel(config)
    size = sum(parameter.numel() for parameter in sketch.parameters())
    dtype = cpu_dtype(size) if place == "cpu" else GPU_DTYPE
    check_room(shape, size * dtype.itemsize, place)
    module = _module(config, place, dtype, seed)
    vocab: int = config.text_config.vocab_size
    facts = ModelInfo(
        name=f"random {shape}",
        family="diffusion_gemma",
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        device=place,
        dtype=str(dtype).removeprefix("torch."),
        length="discover",
        noise=Noise(mask_id=None, vocab_size=vocab),
        sampling=RELEASED,
        pad_id=0,
        forbidden_ids=(),
        canvas_length=config.canvas_length,
        widths=(24, 96),
        context_limit=_CONTEXT,
        instructions=True,
    )
    prompt: Any = NumberedPrompt(vocab, limit=_CONTEXT, pinned=min(48, config.canvas_length // 3))
    return DiffusionGemma(GemmaNetwork(module), facts, prompt)


def _config(shape: str) -> Any:
    if shape == "small":
        return DiffusionGemmaConfig.from_pretrained(BUNDLED_PATH)
    return _released(_RELEASED_LAYERS if shape == "released" else layers_asked(shape, _RELEASED_LAYERS))


def _released(layers: int) -> DiffusionGemmaConfig:
    """google/diffusiongemma-26B-A4B-it, or its first layers with the last one made full, as the architecture wants."""
    full: dict[str, Any] = {"num_global_key_value_heads": 2, "global_head_dim": 512}
    kinds = ["full_attention" if (index + 1) % _FULL_EVERY == 0 else "sliding_attention" for index in range(layers)]
    text = DiffusionGemmaTextConfig(
        vocab_size=262_144,
        hidden_size=2816,
        intermediate_size=2112,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=256,
        sliding_window=1024,
        layer_types=[*kinds[:-1], "full_attention"],
        num_experts=128,
        top_k_experts=8,
        moe_intermediate_size=704,
        max_position_embeddings=262_144,
        **full,
    )
    return DiffusionGemmaConfig(text_config=text, vision_config=no_vision(), canvas_length=256)


def _module(config: Any, place: str, dtype: torch.dtype, seed: int) -> Any:
    # Only the decoder's weights take memory: the encoder's and the head's are tied to them.
    with made_in(dtype, place), init_empty_weights(include_buffers=False):
        module: Any = TextModel(config)
    for part in module.model.decoder.modules():
        for name, empty in list(part.named_parameters(recurse=False)):
            setattr(part, name, nn.Parameter(torch.empty_like(empty, device=place)))
    module.tie_weights()
    module.to(dtype)
    randomise(module, seed)
    if config.text_config.num_experts == 1:
        # A dense model is told by the norm of zeros behind its stand-in for experts.
        for layer in module.model.decoder.layers:
            layer.post_feedforward_layernorm_2.weight.fill_(0.0)
    return module.eval()
