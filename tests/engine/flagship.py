"""A tiny DiffusionGemma in a file as llama.cpp's converter writes it: GGUF, with Gemma 4's tokenizer."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from engine.models.checkpoints.gguf_blocks import decoded
from engine.models.gemma.config import GemmaConfig, read_config
from tests.engine.quantized import SIZES
from tests.engine.released import CHAT_TEMPLATE, SPECIALS, new_model

ARCHITECTURE = "diffusion-gemma"
MERGES = ("r e", "t u", "tu r", "tur n", "re turn", "▁ ▁", "▁▁ ▁▁", "\n \n", "\n\n \n", "d e", "de f", "def ▁", "▁ =")
TOKENS = (
    *SPECIALS,
    *(f"<0x{byte:02X}>" for byte in range(256)),
    *sorted({letter for merge in MERGES for letter in merge if letter != " "} | set("abcxyz0123()[]:.,▁")),
    *dict.fromkeys("".join(merge.split(" ")) for merge in MERGES),
    "<|channel>",
    "<table>",
)
_WHOLE = {
    "model.decoder.embed_tokens.weight": "token_embd.weight",
    "model.decoder.norm.weight": "output_norm.weight",
    **{
        f"model.decoder.self_conditioning.{ours}.weight": f"self_cond_{theirs}.weight"
        for ours, theirs in (
            ("pre_norm", "pre_norm"), ("gate_proj", "gate"), ("up_proj", "up"), ("down_proj", "down"),
        )
    },
}  # fmt: skip
_LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    **{f"self_attn.{own}_proj.weight": f"attn_{own}.weight" for own in "qkv"},
    "self_attn.o_proj.weight": "attn_output.weight",
    **{f"self_attn.{own}_norm.weight": f"attn_{own}_norm.weight" for own in "qk"},
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    **{f"mlp.{own}_proj.weight": f"ffn_{own}.weight" for own in ("gate", "up", "down")},
    "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
    "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
    "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
    "router.proj.weight": "ffn_gate_inp.weight",
    "router.scale": "ffn_gate_inp.scale",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "layer_scalar": "layer_output_scale.weight",
}


def published_name(ours: str) -> str:
    """The name in a GGUF of a tensor of transformers' class."""
    if ours in _WHOLE:
        return _WHOLE[ours]
    owner, _, rest = ours.partition(".layers.")
    layer, _, own = rest.partition(".")
    return f"blk.{layer}.{'enc_' if 'encoder' in owner else ''}{_LAYER[own]}"


def write_flagship(
    path: Path, types: Mapping[str, str] | None = None, fields: Mapping[str, Any] | None = None, **sizes: Any
) -> dict[str, Tensor]:
    """Write a model of random weights. `types`: how tensors are stored whose published names end so, in place of F32;
    `fields`: values that replace those of the architecture's fields, None leaves one out. Returns the numbers that are
    stored, under the names of transformers' class."""
    model = new_model(len(TOKENS), 0, **SIZES | sizes)
    text = read_config(json.loads(model.config.to_json_string()), "tiny")
    said = _fields(text) | dict(fields or {})
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    for name, value in said.items():
        if isinstance(value, bool | float | str | list):
            writer.add_key_value(name, value, _kind(value), sub_type=_kind(value[0]) if type(value) is list else None)
        elif value is not None:
            writer.add_uint32(name, value)
    held: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        tied = ("encoder" in name and not name.endswith("layer_scalar")) or name == "lm_head.weight"
        if tied or "vision" in name:
            continue
        stored = published_name(name)
        kind = next((kind for end, kind in (types or {}).items() if stored.endswith(end)), "F32")
        raw, held[name] = blocks(tensor.float(), kind)
        writer.add_tensor(stored, raw, raw_dtype=gguf.GGMLQuantizationType[kind])
    size = text.heads[-1][0]
    turned = int(size * text.rope_parameters["full_attention"].get("partial_rotary_factor", 1) / 2)
    writer.add_tensor("rope_freqs.weight", np.array([1.0] * turned + [1e30] * (size // 2 - turned), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return held


def blocks(tensor: Tensor, kind: str) -> tuple[np.ndarray, Tensor]:
    """A tensor as it is stored in blocks of this type, and the numbers that these stand for. The package can't make
    those of K-quants: they are drawn instead."""
    if not kind.endswith("_K"):
        raw = gguf.quants.quantize(tensor.numpy(), gguf.GGMLQuantizationType[kind])
        return raw, torch.from_numpy(gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind]).copy())
    rng = np.random.default_rng(tensor.numel())
    *outer, inputs = tensor.shape
    count, nbytes = tensor.numel() // 256, {"Q4_K": 144, "Q6_K": 210}[kind]
    raw = rng.integers(0, 256, (count, nbytes), dtype=np.uint8)
    scales = (rng.uniform(0.5, 1, (count, 2)) * (1e-3, 5e-3)).astype(np.float16).view(np.uint8)
    if kind == "Q4_K":
        raw[:, :4] = scales
    else:
        raw[:, 208:] = scales[:, :2]
    numbers = decoded(torch.from_numpy(raw), kind).view(tensor.shape)
    return raw.reshape(*outer, inputs // 256 * nbytes), numbers


def _fields(text: GemmaConfig) -> dict[str, Any]:
    sliding = [kind == "sliding_attention" for kind in text.layer_types]
    rope, (size, _), (full_size, _) = text.rope_parameters, text.heads[0], text.heads[-1]
    own = {
        "block_count": text.num_hidden_layers,
        "context_length": 4096,
        "embedding_length": text.hidden_size,
        "feed_forward_length": text.intermediate_size,
        "attention.head_count": text.num_attention_heads,
        "attention.head_count_kv": [kv_heads for _, kv_heads in text.heads],
        "rope.freq_base": float(rope["full_attention"]["rope_theta"]),
        "rope.freq_base_swa": float(rope["sliding_attention"]["rope_theta"]),
        "attention.layer_norm_rms_epsilon": float(text.rms_norm_eps),
        "expert_count": text.num_experts,
        "expert_used_count": text.top_k_experts,
        "attention.key_length": full_size,
        "attention.value_length": full_size,
        "final_logit_softcapping": float(text.final_logit_softcapping),
        "attention.sliding_window": text.sliding_window,
        "attention.shared_kv_layers": 0,
        "embedding_length_per_layer_input": 0,
        "attention.sliding_window_pattern": sliding,
        "attention.key_length_swa": size,
        "attention.value_length_swa": size,
        "expert_feed_forward_length": text.moe_intermediate_size,
        "rope.dimension_count": full_size,
        "rope.dimension_count_swa": size,
        "attention.causal": False,
    }
    kinds = {"<unk>": 2, "<|channel>": 4, "<table>": 4} | {f"<0x{byte:02X}>": 6 for byte in range(256)}
    return {f"{ARCHITECTURE}.{name}": value for name, value in own.items()} | {
        "diffusion.canvas_length": 32,
        "diffusion.eb_max_steps": 8,
        "diffusion.eb_t_min": 0.4,
        "diffusion.eb_t_max": 0.8,
        "diffusion.eb_entropy_bound": 0.2,
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.tokens": list(TOKENS),
        "tokenizer.ggml.token_type": [kinds.get(token, 3 if token in SPECIALS else 1) for token in TOKENS],
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.bos_token_id": TOKENS.index("<bos>"),
        "tokenizer.ggml.eos_token_id": TOKENS.index("<eos>"),
        "tokenizer.ggml.padding_token_id": TOKENS.index("<pad>"),
        "tokenizer.ggml.unknown_token_id": TOKENS.index("<unk>"),
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def _kind(value: Any) -> gguf.GGUFValueType:
    return gguf.GGUFValueType.get_type(value)
