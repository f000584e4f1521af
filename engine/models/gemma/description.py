"""What the files of a DiffusionGemma checkpoint say, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.checkpoints.directory import Checkpoint, TensorHeader
    from engine.checkpoints.placement import Placement
    from engine.core.names import Device
    from engine.models.base import Model

MODEL_TYPES = ("diffusion_gemma",)
SHAPES = ("released", "26b-layers=N", "small")
"""Of random weights; N stands for a number of layers."""
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


def open_model(checkpoint: Checkpoint, placement: Placement) -> Model:
    """Load it. Raises ModelError."""
    from engine.models.gemma.model import DiffusionGemma

    return DiffusionGemma.open(checkpoint, placement)


def random_model(shape: str, device: Device, seed: int) -> Model:
    """Random weights in one of `SHAPES`. Raises BadInput for too many layers, ModelError without memory."""
    from engine.bench.gemma.random_model import random_model

    return random_model(shape, device, seed)
