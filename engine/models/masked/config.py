"""From a published config.json to an architecture that transformers has: Qwen2's or Llama's, with the causal mask off.

What these files may say is known; anything else is refused with the field named, as it would change the computation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from engine.core.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Sizes, in features, heads, layers and tokens."""

    kind: Literal["qwen2", "llama"]
    """The class of transformers; they differ in the bias of queries, keys and values."""
    vocab: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    norm_eps: float
    rope_theta: float
    tied: bool
    """Whether the head is the embedding table."""

    @property
    def head_size(self) -> int:
        """In features."""
        return self.hidden // self.heads


_PLAIN: dict[str, tuple[object, ...]] = {
    "hidden_act": ("silu",),
    "use_sliding_window": (False,),
    "use_mrope": (False,),
    "rope_scaling": (None,),
    "attention_bias": (False, True),
    "mlp_bias": (False,),
}
"""What a config in the manner of transformers may say, where it says it."""
_BIASED = ("Dream", "qwen2")
"""Types whose queries, keys and values have a bias, though their config.json does not say so."""
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
"""The same for LLaDA's, which descends from OLMo's."""

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
    """The name that transformers' classes give to a tensor of a published file; None for what its older versions wrote
    beside the weights."""
    if tensor.endswith("rotary_emb.inv_freq"):
        return None
    for pattern, name in _OLMO_NAMES:
        renamed, found = re.subn(pattern, name, tensor)
        if found:
            return renamed
    return tensor


def read_architecture(config: dict[str, Any], name: str) -> Architecture:
    """What config.json describes. Raises ModelError, naming the field that is missing, unknown or contradictory."""
    architecture = _olmo(config, name) if config.get("model_type") == "llada" else _plain(config, name)
    if architecture.hidden % architecture.heads:
        raise ModelError(
            _refusal(name, "num_attention_heads", architecture.heads, f"hidden size {architecture.hidden}")
        )
    if architecture.heads % architecture.kv_heads:
        raise ModelError(_refusal(name, "num_key_value_heads", architecture.kv_heads, f"{architecture.heads} heads"))
    return architecture


def _plain(config: dict[str, Any], name: str) -> Architecture:
    _check(config, _PLAIN, name)
    heads = _size(config, "num_attention_heads", name)
    biased = config.get("attention_bias", config["model_type"] in _BIASED)
    hidden = _size(config, "hidden_size", name)
    size = config.get("head_dim") or hidden // heads
    if size != hidden // heads:
        raise ModelError(_refusal(name, "head_dim", size, f"{heads} heads of hidden size {hidden}"))
    return Architecture(
        kind="qwen2" if biased else "llama",
        vocab=_size(config, "vocab_size", name),
        hidden=hidden,
        intermediate=_size(config, "intermediate_size", name),
        layers=_size(config, "num_hidden_layers", name),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        rope_theta=_rope_theta(config, name),
        tied=bool(config.get("tie_word_embeddings", False)),
    )


def _olmo(config: dict[str, Any], name: str) -> Architecture:
    _check(config, _OLMO, name)
    heads = _size(config, "n_heads", name)
    vocab = _size(config, "vocab_size", name)
    return Architecture(
        kind="llama",
        # The table may be longer than the vocabulary.
        vocab=int(config.get("embedding_size") or vocab),
        hidden=_size(config, "d_model", name),
        intermediate=_size(config, "mlp_hidden_size", name),
        layers=_size(config, "n_layers", name),
        heads=heads,
        kv_heads=int(config.get("n_kv_heads") or heads),
        norm_eps=float(config.get("rms_norm_eps", 1e-5)),
        rope_theta=float(config.get("rope_theta", 10000.0)),
        tied=bool(config.get("weight_tying", False)),
    )


def _rope_theta(config: dict[str, Any], name: str) -> float:
    """Where transformers writes it today, or where it wrote it before."""
    today: dict[str, Any] = config.get("rope_parameters") or {}
    if today.get("rope_type", "default") != "default":
        raise ModelError(_unknown(name, "rope_parameters.rope_type", today["rope_type"]))
    return float(today.get("rope_theta") or config.get("rope_theta", 10000.0))


def _check(config: dict[str, Any], known: dict[str, tuple[object, ...]], name: str) -> None:
    for field, values in known.items():
        if field in config and config[field] not in values:
            raise ModelError(_unknown(name, field, config[field]))


def _size(config: dict[str, Any], field: str, name: str) -> int:
    value = config.get(field)
    if not isinstance(value, int) or value < 1:
        raise ModelError(f"The config.json of {name} has no usable {field} ({value!r}): pull or copy the model again.")
    return value


def _unknown(name: str, field: str, value: object) -> str:
    return f"The config.json of {name} says {field} is {value!r}, which dg-lsp can't compute: use another model."


def _refusal(name: str, field: str, value: object, against: str) -> str:
    return f"The config.json of {name} says {field} is {value!r}, which contradicts its {against}: pull it again."
