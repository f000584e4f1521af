"""Models of the family `diffusion_gemma` with random weights: speed can be measured without a checkpoint."""

from __future__ import annotations

from typing import Any

from transformers import DiffusionGemmaConfig, DiffusionGemmaTextConfig

from engine.baselines.released_class import TextModel, no_vision
from engine.bench.numbered import NumberedPrompt
from engine.bench.random_weights import layers_asked, random_module, shared_facts
from engine.core.names import Device
from engine.loader.catalog import BUNDLED_PATH
from engine.models.base import ModelInfo, Noise
from engine.models.gemma.model import RELEASED, DiffusionGemma
from engine.models.gemma.network import GemmaNetwork

_RELEASED_LAYERS, _FULL_EVERY = 30, 6
_CONTEXT = 4096


def random_gemma(shape: str, device: Device, seed: int) -> DiffusionGemma:
    """Raises BadInput for too many layers, ModelError without memory."""
    config = _config(shape)
    # Only the decoder's weights take memory: the encoder's and the head's are tied to them.
    module = random_module(shape, device, seed, lambda: TextModel(config), lambda module: module.model.decoder)
    if config.text_config.num_experts == 1:
        # A dense model is told by the norm of zeros behind its stand-in for experts.
        for layer in module.model.decoder.layers:
            layer.post_feedforward_layernorm_2.weight.fill_(0.0)
    vocab: int = config.text_config.vocab_size
    facts = ModelInfo(
        **shared_facts(shape, module),
        family="diffusion_gemma",
        length="discover",
        noise=Noise(mask_id=None, vocab_size=vocab),
        sampling=RELEASED,
        forbidden_ids=(),
        canvas_length=config.canvas_length,
        widths=(24, 96),
        context_limit=_CONTEXT,
        instructions=True,
    )
    prompt: Any = NumberedPrompt(vocab, limit=_CONTEXT, pinned=min(48, config.canvas_length // 3))
    return DiffusionGemma(GemmaNetwork(module), facts, prompt)


def _config(shape: str) -> Any:
    """google/diffusiongemma-26B-A4B-it's, or its first layers with the last one made full, as the architecture wants;
    or the bundled model's."""
    if shape == "small":
        return DiffusionGemmaConfig.from_pretrained(BUNDLED_PATH)
    layers = _RELEASED_LAYERS if shape == "released" else layers_asked(shape, _RELEASED_LAYERS)
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
