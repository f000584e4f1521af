"""The vision tower that the architecture's classes ask for, where there is none."""

from __future__ import annotations

from transformers import Gemma4VisionConfig


def no_vision() -> Gemma4VisionConfig:
    """As small as the classes allow."""
    return Gemma4VisionConfig(
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=8,
        position_embedding_size=4,
    )
