"""A GGUF of DiffusionGemma as the files of a released checkpoint, without torch.

Source: llama.cpp's converter and graph of the architecture `diffusion-gemma` (pull request 24423), which is Gemma 4's
with a scale of the encoder for each layer and the block of self-conditioning.
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import Any

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import TensorHeader
from engine.models.checkpoints.gguf import GgufFile
from engine.models.checkpoints.packed import INT4_GROUP
from engine.models.gemma.config import FULL, MODEL_TYPES, SLIDING

ARCHITECTURES = ("diffusion-gemma",)
_ROPE_TABLE = "rope_freqs.weight"
_NAMES = {
    "token_embd.weight": "model.decoder.embed_tokens.weight",
    "output_norm.weight": "model.decoder.norm.weight",
    "output.weight": "lm_head.weight",
    "self_cond_pre_norm.weight": "model.decoder.self_conditioning.pre_norm.weight",
    "self_cond_gate.weight": "model.decoder.self_conditioning.gate_proj.weight",
    "self_cond_up.weight": "model.decoder.self_conditioning.up_proj.weight",
    "self_cond_down.weight": "model.decoder.self_conditioning.down_proj.weight",
}
_OF_LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "post_ffw_norm_1.weight": "post_feedforward_layernorm_1.weight",
    "pre_ffw_norm_2.weight": "pre_feedforward_layernorm_2.weight",
    "post_ffw_norm_2.weight": "post_feedforward_layernorm_2.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
    "ffn_gate_inp.weight": "router.proj.weight",
    "ffn_gate_inp.scale": "router.scale",
    "ffn_gate_up_exps.weight": "experts.gate_up_proj",
    "ffn_down_exps.weight": "experts.down_proj",
    "ffn_down_exps.scale": "router.per_expert_scale",
    "layer_output_scale.weight": "layer_scalar",
}
_ENCODER_SCALE = "enc_layer_output_scale.weight"
_LAYER = re.compile(r"blk\.([0-9]+)\.(.+)")
_MATRIX = re.compile(r"\.layers\.[0-9]+\..+_proj(\.weight)?")
_TOKENS = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
_PLAIN = ("F32", "F16", "BF16")
_MOST_LAYERS = 1000
_UNTURNED = 1e6
"""A frequency divided by as much turns nothing."""
_NOT_OURS = ("embedding_length_per_layer_input", "attention.shared_kv_layers")
"""What other models of Gemma 4 have."""
_SETTINGS = {
    "diffusion.eb_max_steps": "max_denoising_steps",
    "diffusion.eb_t_min": "t_min",
    "diffusion.eb_t_max": "t_max",
    "diffusion.eb_stability_threshold": "stability_threshold",
    "diffusion.eb_confidence_threshold": "confidence_threshold",
}


def from_gguf(file: GgufFile) -> tuple[dict[str, Any], list[TensorHeader]]:
    """A GGUF as a config.json, and its tensors under the names of transformers' class. Raises ModelError for what that
    would compute otherwise."""
    return _config(file), [_named(file, tensor) for tensor in file.tensors.values() if tensor.name != _ROPE_TABLE]


def _config(file: GgufFile) -> dict[str, Any]:
    for field in _NOT_OURS:
        if file.fields.get(field):
            raise ModelError(f"{file.path} says its {field} is {file.fields[field]!r}: dg-lsp can't compute that.")
    count = min(file.size("block_count"), _MOST_LAYERS)
    sliding = _of_layers(file, "attention.sliding_window_pattern", count)
    kv_heads = _of_layers(file, "attention.head_count_kv", count)
    by_kind = [{heads for heads, own in zip(kv_heads, sliding, strict=True) if own is kind} for kind in (True, False)]
    if any(len(heads) > 1 for heads in by_kind) or any(type(heads) is not int or heads < 1 for heads in kv_heads):
        raise ModelError(f"{file.path} says its attention.head_count_kv is {str(kv_heads)[:80]}: pull it again.")
    of_sliding, of_full = (next(iter(heads), None) for heads in by_kind)
    tokens = file.tensors.get("token_embd.weight")
    if tokens is None:
        raise ModelError(f"{file.path} lacks token_embd.weight: pull or copy the model again.")
    full_size = file.size("attention.key_length")
    text = {
        "vocab_size": tokens.shape[0],
        "hidden_size": file.size("embedding_length"),
        "intermediate_size": file.size("feed_forward_length"),
        "num_hidden_layers": count,
        "num_attention_heads": file.size("attention.head_count"),
        "num_key_value_heads": of_sliding or of_full,
        "num_global_key_value_heads": of_full or of_sliding,
        "head_dim": file.size("attention.key_length_swa"),
        "global_head_dim": full_size,
        "rms_norm_eps": file.field("attention.layer_norm_rms_epsilon"),
        "final_logit_softcapping": file.field("final_logit_softcapping"),
        "sliding_window": file.size("attention.sliding_window"),
        "layer_types": [SLIDING if own else FULL for own in sliding],
        "num_experts": file.size("expert_count"),
        "top_k_experts": file.size("expert_used_count"),
        "moe_intermediate_size": file.size("expert_feed_forward_length"),
        "rope_parameters": {
            SLIDING: {"rope_type": "default", "rope_theta": file.field("rope.freq_base_swa")},
            FULL: {
                "rope_type": "proportional",
                "rope_theta": file.field("rope.freq_base"),
                "partial_rotary_factor": _turned(file, full_size),
            },
        },
    }
    return {
        "model_type": MODEL_TYPES[0],
        "canvas_length": file.size("diffusion.canvas_length"),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "text_config": text,
    }


def _of_layers(file: GgufFile, field: str, count: int) -> list[Any]:
    """A field with a value for each layer, or with one for all."""
    said = file.field(field)
    values = said if isinstance(said, list) else [said] * count
    if len(values) != count:
        raise ModelError(f"{file.path} says its {field} for {len(values)} of {count} layers: pull it again.")
    return values


def _turned(file: GgufFile, size: int) -> float:
    """The share of a head of full attention that turns with its position: of the rest, frequencies are divided by
    numbers without end."""
    table = file.tensors.get(_ROPE_TABLE)
    if table is None or table.dtype != "F32" or table.shape != (size // 2,):
        raise ModelError(f"{file.path} lacks {_ROPE_TABLE} for heads of {size}: pull or copy the model again.")
    with table.file.open("rb") as stream:
        stream.seek(table.offset)
        divisors = struct.unpack(f"<{size // 2}f", stream.read(table.nbytes))
    turned = sum(each == 1 for each in divisors)
    if divisors[:turned] != (1,) * turned or any(each < _UNTURNED for each in divisors[turned:]):
        raise ModelError(f"{file.path} turns heads by {_ROPE_TABLE} in another way than DiffusionGemma: use another.")
    return 2 * turned / size


def _named(file: GgufFile, tensor: TensorHeader) -> TensorHeader:
    match = _LAYER.fullmatch(tensor.name)
    if match is None:
        name = _NAMES.get(tensor.name)
    elif match[2] == _ENCODER_SCALE:
        name = f"model.encoder.language_model.layers.{match[1]}.layer_scalar"
    else:
        own = _OF_LAYER.get(match[2])
        name = own and f"model.decoder.layers.{match[1]}.{own}"
    if not name:
        raise ModelError(
            f"{file.path} holds {tensor.name[:80]}, which DiffusionGemma's class knows nothing of: use another model."
        )
    rounded = tensor.dtype not in _PLAIN and len(tensor.shape) > 1 and tensor.shape[-1] % INT4_GROUP == 0
    return replace(tensor, name=name, rounded=rounded and _MATRIX.search(name) is not None)


def small_files(file: GgufFile) -> dict[str, dict[str, Any]]:
    """The small files of a released checkpoint beside config.json, by name."""
    fields = file.fields
    generation: dict[str, Any] = {ours: fields[field] for field, ours in _SETTINGS.items() if field in fields}
    if "diffusion.eb_entropy_bound" in fields:
        generation["sampler_config"] = {"entropy_bound": fields["diffusion.eb_entropy_bound"]}
    tokens = dict(enumerate(fields.get("tokenizer.ggml.tokens", ())))
    ids = {name: fields.get(f"tokenizer.ggml.{field}_token_id") for name, field in _TOKENS.items()}
    said = {name: tokens[at] for name, at in ids.items() if at in tokens}
    template = {"chat_template": fields.get("tokenizer.chat_template")}
    return {"generation_config.json": generation, "tokenizer_config.json": said | template}
