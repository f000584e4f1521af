"""Reads the files of a DiffusionGemma checkpoint without torch: sizes from config.json, and its tensors."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Required, TypedDict

from msgspec import Meta, convert

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import Positive, Size, TensorHeader, check_fields

MODEL_TYPES = ("diffusion_gemma",)
SLIDING, FULL = "sliding_attention", "full_attention"
_VISION = ("model.encoder.vision_tower.", "model.encoder.embed_vision.")
_ENCODER, _DECODER = "model.encoder.language_model.", "model.decoder."
_SCALE = ".layer_scalar"
_FULL_EVERY = 6
_ROPE: dict[str, dict[str, Any]] = {
    SLIDING: {"rope_type": "default", "rope_theta": 10_000.0},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1_000_000.0},
}
_KNOWN: dict[str, tuple[object, ...]] = {
    "hidden_activation": ("gelu_pytorch_tanh",),
    "use_bidirectional_attention": (None, "vision"),
}
"""Other fields of a text_config, with the only value that each may have: another one would change the computation."""


class Rope(TypedDict, total=False):
    """The rotation of heads in a type of layer."""

    rope_type: str
    rope_theta: Required[Positive]
    partial_rotary_factor: Annotated[float, Meta(ge=0, le=1)]
    factor: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmaConfig:
    """Sizes in features, heads, layers and tokens; names and defaults are those of transformers."""

    vocab_size: Size = 262_144
    hidden_size: Size = 2304
    intermediate_size: Size = 9216
    num_hidden_layers: Size
    num_attention_heads: Size = 8
    attention_bias: bool = False
    rms_norm_eps: Positive = 1e-6
    final_logit_softcapping: Positive = 30.0
    sliding_window: Size = 512
    num_experts: Size
    top_k_experts: Size
    moe_intermediate_size: Size
    layer_types: tuple[str, ...]
    heads: tuple[tuple[Size, Size], ...]
    """(size of a head, heads of keys and values) of each layer."""
    rope_parameters: dict[str, Rope]
    """By the type of layer."""
    tie_word_embeddings: bool
    canvas_length: int


def read_config(config: dict[str, Any], name: str) -> GemmaConfig:
    """The sizes in a config.json. Raises ModelError for what can't be computed, ValidationError for a value of another
    type or out of range."""
    text: dict[str, Any] = config["text_config"]
    rope: dict[str, dict[str, Any]] = text.get("rope_parameters") or _ROPE
    check_fields(text, _KNOWN, name)
    for each in rope.values():
        check_fields(each, {"rope_type": ("default", "proportional")}, name)
    count = layers(config)
    types = text.get("layer_types") or [SLIDING if (index + 1) % _FULL_EVERY else FULL for index in range(count)]
    own: dict[str, Any] = {
        # The last one sees everything, as transformers has it.
        "layer_types": (*types[:-1], FULL),
        "heads": tuple(_heads(text, index, types[index]) for index in range(count)),
        "rope_parameters": rope,
        "tie_word_embeddings": config.get("tie_word_embeddings", True),
        "canvas_length": config.get("canvas_length", 256),
    }
    sizes = {each.name: text[each.name] for each in fields(GemmaConfig) if each.name in text}
    read = convert({**sizes, **own}, GemmaConfig)
    if read.top_k_experts > read.num_experts:
        raise ModelError(
            f"The config.json of {name} says top_k_experts is {read.top_k_experts}, which contradicts its "
            f"{read.num_experts} experts: pull or copy the model again."
        )
    return read


def layers(config: dict[str, Any]) -> int:
    """The number of layers that encoder and decoder share."""
    text: dict[str, Any] = config.get("text_config") or {}
    return int(text.get("num_hidden_layers", 0))


def loaded(tensors: list[TensorHeader]) -> tuple[TensorHeader, ...]:
    """The tensors to load: all but vision parts, and those of an encoder that repeat the decoder's."""
    names = {tensor.name for tensor in tensors}
    return tuple(
        tensor
        for tensor in tensors
        if not tensor.name.startswith(_VISION)
        and (tensor.name.endswith(_SCALE) or tensor.name.replace(_ENCODER, _DECODER, 1) not in names - {tensor.name})
    )


def our_name(tensor: str) -> str | None:
    """The name of a stored tensor in our module; encoder and decoder share their weights, whichever of them a file
    names."""
    if tensor.startswith(_VISION):
        return None
    return tensor if tensor.endswith(_SCALE) else tensor.replace(_ENCODER, _DECODER, 1)


def stand_in(tensor: str) -> str:
    """The decoder's tensor for one of the encoder, and the other way round."""
    prefixes = (_ENCODER, _DECODER) if tensor.startswith(_ENCODER) else (_DECODER, _ENCODER)
    return tensor.replace(*prefixes, 1)


def _heads(text: dict[str, Any], index: int, kind: str) -> tuple[int, int]:
    full = {"head_dim": text.get("global_head_dim", 512), "num_key_value_heads": text.get("num_global_key_value_heads")}
    changed = text.get("per_layer_config", {str(index): {} if kind == SLIDING else full}).get(str(index), {})
    size, kv_heads = (
        changed.get(field) or text.get(field, default)
        for field, default in (("head_dim", 256), ("num_key_value_heads", 4))
    )
    return size, kv_heads
