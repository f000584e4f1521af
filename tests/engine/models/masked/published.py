"""Tiny checkpoints of masked-diffusion coders, written as their authors publish them, and what they compute, plainly.

Layouts: the Dream family (Qwen2's tensor names, tokenizer in vocab.json and merges.txt), LLaDA (OLMo's tensor names)
and Open-dCoder (a plain Qwen2 with a tied head).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

Layout = Literal["dream-coder", "dreamon", "diffucoder", "llada", "open-dcoder"]
LAYOUTS: tuple[Layout, ...] = ("dream-coder", "dreamon", "diffucoder", "llada", "open-dcoder")
HIDDEN, INNER, LAYERS, HEADS, KV_HEADS = 32, 48, 2, 4, 2
MERGES = ("in", "re", "turn", "return", "self", "\u0120\u0120", "\u0120=", "def")
_DREAM_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>"]
_ADDED: dict[Layout, list[str]] = {
    "dream-coder": _DREAM_TOKENS,
    "dreamon": [*_DREAM_TOKENS, "<|expand|>"],
    "diffucoder": [*_DREAM_TOKENS, "<|dlm_pad|>"],
    "llada": ["<|startoftext|>", "<|endoftext|>", "<|mdm_mask|>"],
    "open-dcoder": ["<|endoftext|>", "<|fim_middle|>", "<M>"],
}
SPARE_ROWS = 5
"""Rows of the embedding table that no token has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the plain computation needs to know."""

    kv_heads: int
    eps: float
    theta: float


def write_published(path: Path, layout: Layout, *, seed: int = 0) -> Path:
    """A random model of some 20,000 parameters in two shards, with an index."""
    path.mkdir(parents=True, exist_ok=True)
    vocabulary = write_tokenizer(path, layout)
    rows = vocabulary + SPARE_ROWS
    (path / "config.json").write_text(json.dumps(config(layout, rows, vocabulary)))
    tensors = llada_tensors(rows, seed) if layout == "llada" else qwen_tensors(rows, seed, tied=layout == "open-dcoder")
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, held in shards.items():
        save_file({name: tensors[name] for name in held}, path / file)
    index = {"metadata": {}, "weight_map": {name: file for file, held in shards.items() for name in held}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    # It must never be run.
    (path / "modeling_dream.py").write_text("raise RuntimeError('remote code was run')\n")
    return path


def config(layout: Layout, rows: int, vocabulary: int) -> dict[str, Any]:
    mask = vocabulary - (2 if layout in ("dreamon", "diffucoder") else 1)
    if layout == "llada":
        return {
            "model_type": "llada", "architectures": ["LLaDAModelLM"], "activation_type": "silu", "alibi": False,
            "attention_layer_norm": False, "bias_for_layer_norm": False, "block_group_size": 1, "block_type": "llama",
            "auto_map": {"AutoModel": "modeling_llada.LLaDAModelLM"}, "d_model": HIDDEN, "embedding_size": rows,
            "vocab_size": rows, "include_bias": False, "include_qkv_bias": False, "input_emb_norm": False,
            "layer_norm_type": "rms", "layer_norm_with_affine": True, "mask_token_id": mask,
            "max_sequence_length": 4096, "mlp_hidden_size": INNER, "multi_query_attention": None, "n_heads": HEADS,
            "n_kv_heads": HEADS, "n_layers": LAYERS, "rms_norm_eps": 1e-5, "rope": True, "rope_theta": 500000.0,
            "scale_logits": False, "weight_tying": False,
        }  # fmt: skip
    published: dict[str, Any] = {
        "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
        "max_position_embeddings": 131072, "vocab_size": rows, "use_sliding_window": False,
    }  # fmt: skip
    if layout == "open-dcoder":
        return {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": True, **published}
    dream = {"auto_map": {"AutoModel": "modeling_dream.DreamModel"}, "mask_token_id": mask, "rope_scaling": None}
    return {"model_type": "Dream", "architectures": ["DreamModel"], "tie_word_embeddings": False, **dream, **published}


def write_tokenizer(path: Path, layout: Layout) -> int:
    """Byte-level with a few merges; returns the size of the vocabulary."""
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges: list[tuple[str, str]] = []
    for word in MERGES:
        pieces = list(word)
        while len(pieces) > 1:
            merges.append((pieces[0], pieces[1]))
            pieces[:2] = [pieces[0] + pieces[1]]
            tokens.append(pieces[0])
    vocabulary = {token: at for at, token in enumerate(dict.fromkeys(tokens))}
    merges = list(dict.fromkeys(merges))
    added = {token: len(vocabulary) + at for at, token in enumerate(_ADDED[layout])}
    if layout in ("llada", "open-dcoder"):
        backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        # Qwen marks its tokens for infilling as ordinary text.
        backend.add_tokens(_ADDED[layout])
        backend.save(str(path / "tokenizer.json"))
    else:
        (path / "vocab.json").write_text(json.dumps(vocabulary))
        (path / "merges.txt").write_text("\n".join(["#version: 0.2", *(" ".join(pair) for pair in merges)]) + "\n")
        (path / "added_tokens.json").write_text(json.dumps(added))
    remote = {"tokenizer_class": "DreamTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer"]}}
    decoder = {str(token): {"content": text, "special": True} for text, token in added.items()}
    (path / "tokenizer_config.json").write_text(json.dumps({**remote, "added_tokens_decoder": decoder}))
    return len(vocabulary) + len(added)


def qwen_tensors(rows: int, seed: int, *, tied: bool) -> dict[str, Tensor]:
    random = _Random(seed)
    size = HIDDEN // HEADS
    found = {"model.embed_tokens.weight": random(rows, HIDDEN), "model.norm.weight": 1 + random(HIDDEN)}
    if not tied:
        found["lm_head.weight"] = random(rows, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        for name, width in (("q", HIDDEN), ("k", KV_HEADS * size), ("v", KV_HEADS * size)):
            found[f"{prefix}.self_attn.{name}_proj.weight"] = random(width, HIDDEN)
            found[f"{prefix}.self_attn.{name}_proj.bias"] = random(width)
        found[f"{prefix}.self_attn.o_proj.weight"] = random(HIDDEN, HIDDEN)
        found[f"{prefix}.mlp.gate_proj.weight"] = random(INNER, HIDDEN)
        found[f"{prefix}.mlp.up_proj.weight"] = random(INNER, HIDDEN)
        found[f"{prefix}.mlp.down_proj.weight"] = random(HIDDEN, INNER)
        found[f"{prefix}.input_layernorm.weight"] = 1 + random(HIDDEN)
        found[f"{prefix}.post_attention_layernorm.weight"] = 1 + random(HIDDEN)
    return found


def llada_tensors(rows: int, seed: int) -> dict[str, Tensor]:
    random = _Random(seed)
    found = {
        "model.transformer.wte.weight": random(rows, HIDDEN),
        "model.transformer.ln_f.weight": 1 + random(HIDDEN),
        "model.transformer.ff_out.weight": random(rows, HIDDEN),
    }
    for layer in range(LAYERS):
        prefix = f"model.transformer.blocks.{layer}"
        for name in ("q_proj", "k_proj", "v_proj", "attn_out"):
            found[f"{prefix}.{name}.weight"] = random(HIDDEN, HIDDEN)
        found[f"{prefix}.ff_proj.weight"] = random(INNER, HIDDEN)
        found[f"{prefix}.up_proj.weight"] = random(INNER, HIDDEN)
        found[f"{prefix}.ff_out.weight"] = random(HIDDEN, INNER)
        found[f"{prefix}.attn_norm.weight"] = 1 + random(HIDDEN)
        found[f"{prefix}.ff_norm.weight"] = 1 + random(HIDDEN)
    return found


def plain_logits(path: Path, layout: Layout, ids: list[int]) -> Tensor:
    """[T, V]: what the published code predicts for each position, straight from the stored tensors, float32."""
    stored: dict[str, Tensor] = {}
    for file in path.glob("*.safetensors"):
        stored |= load_file(file)
    if layout == "llada":
        return _plain(_as_qwen(stored), ids, Shape(kv_heads=HEADS, eps=1e-5, theta=500000.0))
    logits = _plain(stored, ids, Shape(kv_heads=KV_HEADS, eps=1e-6, theta=1000000.0))
    # The Dream family: logits[:, 0], then logits[:, :-1].
    return torch.cat((logits[:1], logits[:-1]))


def _as_qwen(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    names = {"wte": "model.embed_tokens", "ln_f": "model.norm", "ff_out": "lm_head"}
    parts = {
        "q_proj": "self_attn.q_proj", "k_proj": "self_attn.k_proj", "v_proj": "self_attn.v_proj",
        "attn_out": "self_attn.o_proj", "ff_proj": "mlp.gate_proj", "up_proj": "mlp.up_proj", "ff_out": "mlp.down_proj",
        "attn_norm": "input_layernorm", "ff_norm": "post_attention_layernorm",
    }  # fmt: skip
    found: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        words = name.split(".")
        if words[2] == "blocks":
            found[f"model.layers.{words[3]}.{parts[words[4]]}.weight"] = tensor
        else:
            found[f"{names[words[2]]}.weight"] = tensor
    return found


def _plain(stored: dict[str, Tensor], ids: list[int], shape: Shape) -> Tensor:
    table = stored["model.embed_tokens.weight"]
    hidden = table[ids]
    for layer in range(LAYERS):
        own = {
            name.removeprefix(f"model.layers.{layer}."): tensor
            for name, tensor in stored.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        hidden = hidden + _attended(own, _rms(hidden, own["input_layernorm.weight"], shape.eps), shape)
        normed = _rms(hidden, own["post_attention_layernorm.weight"], shape.eps)
        gate = normed @ own["mlp.gate_proj.weight"].T
        inner = gate * torch.sigmoid(gate) * (normed @ own["mlp.up_proj.weight"].T)
        hidden = hidden + inner @ own["mlp.down_proj.weight"].T
    return _rms(hidden, stored["model.norm.weight"], shape.eps) @ stored.get("lm_head.weight", table).T


def _attended(own: dict[str, Tensor], hidden: Tensor, shape: Shape) -> Tensor:
    size = HIDDEN // HEADS
    out: list[Tensor] = []
    query, key, value = (
        hidden @ own[f"self_attn.{name}_proj.weight"].T + own.get(f"self_attn.{name}_proj.bias", torch.zeros(1))
        for name in "qkv"
    )
    for head in range(HEADS):
        mine = slice(head * size, (head + 1) * size)
        group = head // (HEADS // shape.kv_heads)
        shared = slice(group * size, (group + 1) * size)
        turned, keys = (_turned(part, shape.theta) for part in (query[:, mine], key[:, shared]))
        weights = torch.softmax(turned @ keys.T / size**0.5, dim=-1)
        out.append(weights @ value[:, shared])
    return torch.cat(out, dim=-1) @ own["self_attn.o_proj.weight"].T


def _turned(states: Tensor, theta: float) -> Tensor:
    half = states.shape[1] // 2
    out = states.clone()
    for position in range(states.shape[0]):
        for pair in range(half):
            angle = torch.tensor(position / theta ** (2 * pair / states.shape[1]))
            a, b = states[position, pair], states[position, pair + half]
            out[position, pair] = a * angle.cos() - b * angle.sin()
            out[position, pair + half] = b * angle.cos() + a * angle.sin()
    return out


def _rms(hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
    return weight * hidden / (hidden.square().mean(-1, keepdim=True) + eps).sqrt()


class _Random:
    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, *size: int) -> Tensor:
        return torch.randn(*size, generator=self._generator) * 0.3
