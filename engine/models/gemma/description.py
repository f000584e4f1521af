"""What the files of a DiffusionGemma checkpoint say, without torch."""

from __future__ import annotations

from typing import Any

from engine.checkpoints.directory import TensorHeader

MODEL_TYPES = ("diffusion_gemma",)
_VISION = ("model.encoder.vision_tower.", "model.encoder.embed_vision.")
_ENCODER, _DECODER = "model.encoder.language_model.", "model.decoder."


def layers(config: dict[str, Any]) -> int:
    """How many layers encoder and decoder share."""
    text: dict[str, Any] = config.get("text_config") or {}
    return int(text.get("num_hidden_layers", 0))


def loaded(tensors: list[TensorHeader]) -> tuple[TensorHeader, ...]:
    """All tensors but vision parts, and an encoder that repeats the decoder's weights."""
    names = {tensor.name for tensor in tensors}
    return tuple(
        tensor
        for tensor in tensors
        if not tensor.name.startswith(_VISION)
        and tensor.name.replace(_ENCODER, _DECODER, 1) not in names - {tensor.name}
    )
