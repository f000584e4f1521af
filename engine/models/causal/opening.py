"""From a GGUF of Qwen2's or Llama's classes to a network and its tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor

from engine.common.errors import ModelError
from engine.models.checkpoints.gguf import GgufFile, read_gguf
from engine.models.masked.config import Architecture
from engine.models.masked.network import MaskedModule, MaskedNetwork

_OUTSIDE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_INSIDE = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_LAYER = "model.layers."
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How the published tokenizer cuts a text before it merges bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FimTokens:
    """Ids of the markers between the parts of a fill-in-the-middle prompt."""

    prefix: int
    suffix: int
    middle: int
    pad: int
    file_separator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coder:
    """A pretrained coder: its network as a causal one, and what its tokens mean."""

    network: MaskedNetwork
    tokenizer: Tokenizer
    fim: FimTokens

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids


def open_coder(path: Path, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Coder:
    """Read a coder whole into memory. Raises ModelError for a file that holds none."""
    file = read_gguf(path)
    if file.architecture not in ("qwen2", "llama"):
        raise ModelError(f"{path} is of the architecture {file.architecture!r}: use one of qwen2 or llama.")
    architecture = _architecture(file)
    with torch.device("meta"):
        module = MaskedModule(architecture)
    weights = {name: _weight(file, name, architecture, dtype).to(device) for name in dict(module.named_parameters())}
    module.load_state_dict(weights, strict=False, assign=True)
    module.tie_weights()
    tokenizer = read_tokenizer(file)
    return Coder(
        network=MaskedNetwork(module.requires_grad_(False).eval(), architecture),
        tokenizer=tokenizer,
        fim=_fim_tokens(tokenizer, path),
    )


def read_tokenizer(file: GgufFile) -> Tokenizer:
    """The published tokenizer. Raises ModelError for one of another kind."""
    kind = file.field("tokenizer.ggml.pre")
    if kind != "qwen2":
        raise ModelError(f"{file.path} has a tokenizer of the kind {kind!r}, which is unknown here.")
    tokens: list[str] = file.field("tokenizer.ggml.tokens")
    merges: list[str] = file.field("tokenizer.ggml.merges")
    kinds: list[int] = file.field("tokenizer.ggml.token_type")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[_pair(merge) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN2), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(token, special=True) for token, of in zip(tokens, kinds, strict=True) if of != 1]
    tokenizer.add_special_tokens(special)
    # A marker that stands in the user's text is text.
    tokenizer.encode_special_tokens = True
    return tokenizer


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right


def _fim_tokens(tokenizer: Tokenizer, path: Path) -> FimTokens:
    names = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|file_sep|>")
    ids = [found for name in names if (found := tokenizer.token_to_id(name)) is not None]
    if len(ids) < len(names):
        raise ModelError(f"{path} has no markers of fill-in-the-middle: it was not trained to fill gaps.")
    prefix, suffix, middle, pad, separator = ids
    return FimTokens(prefix=prefix, suffix=suffix, middle=middle, pad=pad, file_separator=separator)


def _architecture(file: GgufFile) -> Architecture:
    return Architecture(
        kind="qwen2" if "blk.0.attn_q.bias" in file.tensors else "llama",
        vocab=int(file.tensors["token_embd.weight"].shape[1]),
        hidden=file.field("embedding_length"),
        intermediate=file.field("feed_forward_length"),
        layers=file.field("block_count"),
        heads=file.field("attention.head_count"),
        kv_heads=file.field("attention.head_count_kv"),
        norm_eps=file.field("attention.layer_norm_rms_epsilon"),
        rope_theta=file.field("rope.freq_base"),
        # Some files hold the same table twice, each rounded in its own way.
        tied="output.weight" not in file.tensors,
    )


def _weight(file: GgufFile, name: str, architecture: Architecture, dtype: torch.dtype) -> Tensor:
    if name in _OUTSIDE:
        return file.tensor(_OUTSIDE[name], dtype)
    layer, _, part = name.removeprefix(_LAYER).partition(".")
    owner, _, kind = part.rpartition(".")
    weight = file.tensor(f"blk.{layer}.{_INSIDE[owner]}.{kind}", dtype)
    heads = {"self_attn.q_proj": architecture.heads, "self_attn.k_proj": architecture.kv_heads}.get(owner)
    return _halves(weight, heads) if file.architecture == "llama" and heads else weight


def _halves(weight: Tensor, heads: int) -> Tensor:
    """Llama's files have the numbers that a rotation turns side by side; here they lie half a head apart."""
    pairs: Any = weight.view(heads, len(weight) // heads // 2, 2, *weight.shape[1:])
    return pairs.transpose(1, 2).reshape(weight.shape)
