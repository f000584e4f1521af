"""Reads the configuration of a pretrained coder, of Qwen2's or Llama's classes, from a GGUF or from a config.json
beside safetensors. Imports no torch.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import Files, LengthStrategy, TensorHeader, read_json_if_there
from engine.models.checkpoints.gguf import GgufFile
from engine.models.masked.config import read_architecture
from engine.models.prompts.markers import FimTokens, fim_tokens

MODEL_TYPES = ("qwen2", "llama")
"""`model_type` of a config.json, `general.architecture` of a GGUF."""
_TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""From GGUF's names of layers to those of transformers' classes."""
_NAME = re.compile(r"(?:blk\.([0-9]+)\.)?([a-z_]+)\.(weight|bias)")
_ROPE_TABLE = "rope_freqs.weight"
_MOST_LAYERS = 1000


def from_gguf(file: GgufFile) -> tuple[dict[str, Any], list[TensorHeader]]:
    """The config.json that a GGUF stands for, and its tensors under the names of transformers' classes. Raises
    ModelError for a tensor or field that those classes do not have."""
    config = _config(file)
    return config, _tensors(file, config)


def _config(file: GgufFile) -> dict[str, Any]:
    table = file.tensors.get("token_embd.weight")
    if table is None:
        raise ModelError(f"{file.path} lacks token_embd.weight: pull or copy the model again.")
    heads, hidden = file.size("attention.head_count"), file.size("embedding_length")
    return {
        "model_type": file.architecture,
        "vocab_size": table.shape[0],
        "hidden_size": hidden,
        "intermediate_size": file.size("feed_forward_length"),
        "num_hidden_layers": min(file.size("block_count"), _MOST_LAYERS),
        "num_attention_heads": heads,
        "num_key_value_heads": _size(file, "attention.head_count_kv", heads),
        "head_dim": _size(file, "attention.key_length", hidden // heads),
        "rms_norm_eps": file.field("attention.layer_norm_rms_epsilon"),
        "rope_theta": file.fields.get("rope.freq_base", 10000.0),
        "rope_scaling": _scaling(file),
        "attention_bias": "blk.0.attn_q.bias" in file.tensors,
        # Some files hold the same table twice, each rounded in its own way.
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "max_position_embeddings": file.fields.get("context_length"),
        "bos_token_id": file.fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": file.fields.get("tokenizer.ggml.eos_token_id"),
    }


def _tensors(file: GgufFile, config: dict[str, Any]) -> list[TensorHeader]:
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    found: list[TensorHeader] = []
    for tensor in file.tensors.values():
        if tensor.name == _ROPE_TABLE:
            continue
        match = _NAME.fullmatch(tensor.name)
        if match is None or match[2] not in _TENSORS:
            raise ModelError(
                f"{file.path} holds {tensor.name[:80]}, which {file.architecture}'s classes know nothing of: use "
                "another model."
            )
        layer, part, kind = match.groups()
        place = f"model.layers.{layer}." if layer is not None else ""
        found.append(
            replace(
                tensor,
                name=f"{place}{_TENSORS[part]}.{kind}",
                paired_heads=heads.get(part, 0) if file.architecture == "llama" else 0,
            )
        )
    return found


def length(files: Files) -> LengthStrategy:
    """How fills end: "causal". Raises ModelError for a model that was not trained to fill gaps."""
    markers(files)
    return "causal"


def layers(files: Files) -> int:
    """The number of layers. Raises ModelError for a config that this network can't compute."""
    return read_architecture(files.config, files.name).layers


def markers(files: Files) -> FimTokens:
    """Ids of the fill-in-the-middle markers. Raises ModelError for a model that was not trained to fill gaps."""
    ends = files.config.get("eos_token_id")
    end, begin = ends[0] if isinstance(ends, list) and ends else ends, files.config.get("bos_token_id")
    return fim_tokens(
        spelled_tokens(files),
        files.name,
        end=end if isinstance(end, int) else None,
        begin=begin if isinstance(begin, int) else None,
    )


def spelled_tokens(files: Files) -> dict[str, int]:
    """The id of each token, by its spelling in the model's files."""
    if files.fields:
        return {token: at for at, token in enumerate(files.fields.get("tokenizer.ggml.tokens", ()))}
    held = read_json_if_there(files.path / "tokenizer.json", files.name)
    vocabulary: Any = held.get("model", {}).get("vocab", {})
    pieces = vocabulary if isinstance(vocabulary, dict) else {piece: at for at, (piece, _) in enumerate(vocabulary)}
    return {**pieces, **{each["content"]: each["id"] for each in held.get("added_tokens", [])}}


def loaded(tensors: list[TensorHeader]) -> tuple[TensorHeader, ...]:
    """The tensors to load: all but the tables that older versions of transformers saved with the weights."""
    return tuple(tensor for tensor in tensors if not tensor.name.endswith("rotary_emb.inv_freq"))


def _size(file: GgufFile, name: str, default: int) -> int:
    return file.size(name) if name in file.fields else default


def _scaling(file: GgufFile) -> dict[str, Any] | None:
    """How positions are stretched; None: not at all."""
    kind, factor = file.fields.get("rope.scaling.type", "none"), file.fields.get("rope.scaling.factor", 1.0)
    if _ROPE_TABLE in file.tensors:
        kind = "llama3"
    return None if kind == "none" or (kind == "linear" and factor == 1) else {"rope_type": kind, "factor": factor}
