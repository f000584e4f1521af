"""Turns a published config.json into an architecture that transformers has: Qwen2's or Llama's, with the causal mask
off.

Fields with another value than the known ones are refused by name, as they would change the computation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import convert

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import Positive, Size, check_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Sizes, in features, heads, layers and tokens."""

    kind: Literal["qwen2", "llama"]
    """The class of transformers; they differ in the bias of queries, keys and values."""
    vocab: Size
    hidden: Size
    intermediate: Size
    layers: Size
    heads: Size
    kv_heads: Size
    norm_eps: Positive
    rope_theta: Positive
    rope_factor: Positive = 1.0
    """Factor by which positions are stretched, the same in each frequency."""
    tied: bool
    """Whether the head is the embedding table."""

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


_PLAIN: dict[str, tuple[object, ...]] = {
    "hidden_act": ("silu",),
    "use_sliding_window": (False,),
    "use_mrope": (False,),
    "attention_bias": (False, True),
    "mlp_bias": (False,),
}
"""Fields of a config in the manner of transformers, with the only values that each may have."""
_BIASED = ("Dream", "qwen2")
"""Types whose queries, keys and values have a bias that their config.json does not mention."""
_OLMO: dict[str, tuple[object, ...]] = {
    "activation_type": ("silu",),
    "alibi": (False,),
    "attention_layer_norm": (False,),
    "bias_for_layer_norm": (False,),
    "block_group_size": (1,),
    "block_type": ("llama",),
    "include_bias": (False,),
    "include_qkv_bias": (False,),
    "input_emb_norm": (False,),
    "layer_norm_type": ("rms",),
    "layer_norm_with_affine": (True,),
    "multi_query_attention": (None, False),
    "rope": (True,),
    "scale_logits": (False,),
}
"""The same for a config of LLaDA, which descends from OLMo."""
_OLMO_FIELDS = {
    "hidden_size": "d_model",
    "intermediate_size": "mlp_hidden_size",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "num_key_value_heads": "n_kv_heads",
    "tie_word_embeddings": "weight_tying",
}
"""LLaDA's names of fields."""
_OLMO_NAMES = (
    (r"^model\.transformer\.wte\.", "model.embed_tokens."),
    (r"^model\.transformer\.ln_f\.", "model.norm."),
    (r"^model\.transformer\.ff_out\.", "lm_head."),
    (r"^model\.transformer\.blocks\.(\d+)\.attn_out\.", r"model.layers.\1.self_attn.o_proj."),
    (r"^model\.transformer\.blocks\.(\d+)\.([qkv]_proj)\.", r"model.layers.\1.self_attn.\2."),
    (r"^model\.transformer\.blocks\.(\d+)\.attn_norm\.", r"model.layers.\1.input_layernorm."),
    (r"^model\.transformer\.blocks\.(\d+)\.ff_norm\.", r"model.layers.\1.post_attention_layernorm."),
    (r"^model\.transformer\.blocks\.(\d+)\.ff_proj\.", r"model.layers.\1.mlp.gate_proj."),
    (r"^model\.transformer\.blocks\.(\d+)\.up_proj\.", r"model.layers.\1.mlp.up_proj."),
    (r"^model\.transformer\.blocks\.(\d+)\.ff_out\.", r"model.layers.\1.mlp.down_proj."),
)


def our_name(tensor: str) -> str | None:
    """The name of a published tensor in transformers' classes; None for buffers that older versions wrote beside the
    weights."""
    if tensor.endswith("rotary_emb.inv_freq"):
        return None
    for pattern, name in _OLMO_NAMES:
        renamed, found = re.subn(pattern, name, tensor)
        if found:
            return renamed
    return tensor


def read_architecture(config: dict[str, Any], name: str) -> Architecture:
    """The architecture in a config.json. Raises ModelError, naming the field that is missing, unknown or contradictory,
    and ValidationError for a value of another type or out of range."""
    olmo = config.get("model_type") == "llada"
    check_fields(config, _OLMO if olmo else _PLAIN, name)
    fields = _OLMO_FIELDS if olmo else {}

    def said(field: str, default: Any = None) -> Any:
        return config.get(fields.get(field, field), default)

    def size(field: str) -> int:
        value = said(field)
        if not isinstance(value, int) or value < 1:
            raise ModelError(
                f"The config.json of {name} has no usable {fields.get(field, field)} ({value!r}): "
                "pull or copy the model again."
            )
        return value

    heads, hidden, vocab = size("num_attention_heads"), size("hidden_size"), size("vocab_size")
    biased = not olmo and config.get("attention_bias", config["model_type"] in _BIASED)
    kv_heads = said("num_key_value_heads") or heads
    head_size = config.get("head_dim") or hidden // heads
    for field, value, fits, against in (
        ("num_attention_heads", heads, hidden % heads == 0, f"hidden size {hidden}"),
        ("head_dim", head_size, head_size == hidden // heads, f"{heads} heads of hidden size {hidden}"),
        ("num_key_value_heads", kv_heads, heads % kv_heads == 0, f"{heads} heads"),
    ):
        if not fits:
            raise ModelError(
                f"The config.json of {name} says {field} is {value!r}, which contradicts its {against}: pull it again."
            )
    read = {
        "kind": "qwen2" if biased else "llama",
        # LLaDA's table may be longer than its vocabulary.
        "vocab": config.get("embedding_size") or vocab,
        "hidden": hidden,
        "intermediate": size("intermediate_size"),
        "layers": size("num_hidden_layers"),
        "heads": heads,
        "kv_heads": kv_heads,
        "norm_eps": config.get("rms_norm_eps", 1e-5 if olmo else 1e-6),
        "rope_theta": _rope_theta(config),
        "rope_factor": _rope_factor(config, name),
        "tied": bool(said("tie_word_embeddings", False)),
    }
    return convert(read, Architecture)


def _rope_theta(config: dict[str, Any]) -> object:
    """The base of rotations, from where transformers writes it now, or wrote it before."""
    today: dict[str, Any] = config.get("rope_parameters") or {}
    return today.get("rope_theta") or config.get("rope_theta", 10000.0)


def _rope_factor(config: dict[str, Any], name: str) -> object:
    said: dict[str, Any] = config.get("rope_parameters") or config.get("rope_scaling") or {}
    field = "rope_parameters.rope_type" if config.get("rope_parameters") else "rope_scaling"
    kind = said.get("rope_type") or said.get("type") or ("linear" if said and field == "rope_scaling" else "default")
    check_fields({field: kind}, {field: ("default", "linear")}, name)
    return said.get("factor", 1.0) if kind == "linear" else 1.0
