"""Builds the tokenizer of a pretrained coder from a GGUF or a tokenizer.json: byte-level, or SentencePiece with bytes.

A text's bytes survive: no Unicode normalisation, no space before a text. A marker in the user's text is plain text.

Sources: `llama-vocab.cpp` of llama.cpp for the kinds (`tokenizer.ggml.pre`), the published tokenizer.json of each for
how it splits a text before merges; `SentencePieceExtractor` of transformers for merges from scores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import Checkpoint, read_json, reading
from engine.models.tokenizer import settled

_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = (rf"{_WORDS}|\p{{N}}|{_REST}",)
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_STARCODER = (r"\p{N}", _GPT2)
_CUTS: Mapping[str, Sequence[str]] = {
    "qwen2": _QWEN2,
    "gpt-2": (_GPT2,),
    "starcoder": _STARCODER,
    "refact": _STARCODER,
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"),
    "llama-bpe": (rf"{_WORDS}|\p{{N}}{{1,3}}|{_REST}",),
}
"""The patterns by which each kind of byte-level tokenizer splits a text before it merges bytes, in order."""
_WHOLE_WORDS = {"llama-bpe"}
"""Kinds that encode a word of the vocabulary as one token, whatever the merges say."""
_MARKER = re.compile(r"\s*[<\[].*[>\]]\s*", re.DOTALL)
_NORMAL, _UNKNOWN, _USER, _BYTE = 1, 2, 4, 6
"""Values of `tokenizer.ggml.token_type`."""
_METASPACE = "\u2581"


def read_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer of a checkpoint. Raises ModelError for an unknown kind, or one that contradicts itself."""
    with reading(f"The tokenizer of {checkpoint.name}"):
        return settled(
            _from_fields(checkpoint.fields, checkpoint.name) if checkpoint.fields else _from_file(checkpoint)
        )


def _from_fields(fields: Mapping[str, Any], name: str) -> Tokenizer:
    model, tokens, kinds = (_field(fields, field, name) for field in ("model", "tokens", "token_type"))
    if len(kinds) != len(tokens):
        raise ModelError(f"{name} has {len(tokens)} tokens, but says of {len(kinds)} what they are: pull it again.")
    vocabulary = {token: at for at, token in enumerate(tokens)}
    if model == "gpt2":
        tokenizer = _byte_level(fields, vocabulary, name)
    elif model == "llama":
        tokenizer = _sentence_piece(vocabulary, _field(fields, "scores", name), kinds)
    else:
        raise ModelError(
            f"{name} has a tokenizer of the model {str(model)[:80]!r}, which dg-lsp can't build: use another."
        )
    # Tokens that no merge makes: markers, which no text has, and texts that are always one token.
    others = [(token, kind) for token, kind in zip(tokens, kinds, strict=True) if kind not in (_NORMAL, _BYTE)]
    special = {token: None for token, kind in others if kind != _USER or _is_marker(token)}
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, _ in others if token not in special])
    return tokenizer


def _byte_level(fields: Mapping[str, Any], vocabulary: dict[str, int], name: str) -> Tokenizer:
    kind = fields.get("tokenizer.ggml.pre", "gpt-2")
    cuts = _CUTS.get(kind)
    if cuts is None:
        raise ModelError(
            f"{name} has a tokenizer of the kind {str(kind)[:80]!r}, and dg-lsp knows {', '.join(_CUTS)}: use another."
        )
    merges = [_pair(merge) for merge in _field(fields, "merges", name)]
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges, ignore_merges=kind in _WHOLE_WORDS))
    splits: list[Any] = [pre_tokenizers.Split(Regex(cut), behavior="isolated") for cut in cuts]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentence_piece(vocabulary: dict[str, int], scores: Sequence[float], kinds: Sequence[int]) -> Tokenizer:
    normal = {token: at for token, at in vocabulary.items() if kinds[at] == _NORMAL}
    unknown = next((token for token, at in vocabulary.items() if kinds[at] == _UNKNOWN), None)
    tokenizer = Tokenizer(
        BPE(vocab=vocabulary, merges=_merges(normal, scores), unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", _METASPACE)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(_METASPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def _merges(vocabulary: Mapping[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """Each pair of tokens that makes a third one, the highest score first."""
    found = [
        (-scores[at], vocabulary[token[:cut]], vocabulary[token[cut:]], token[:cut], token[cut:])
        for token, at in vocabulary.items()
        for cut in range(1, len(token))
        if token[:cut] in vocabulary and token[cut:] in vocabulary
    ]
    return [(left, right) for *_, left, right in sorted(found)]


def _from_file(checkpoint: Checkpoint) -> Tokenizer:
    if not (checkpoint.path / "tokenizer.json").exists():
        raise ModelError(f"{checkpoint.name} has no tokenizer.json: copy it there, or pull the model again.")
    held = read_json(checkpoint.path / "tokenizer.json", checkpoint.name)
    for token in held.get("added_tokens", []):
        token["special"] = token["special"] or _is_marker(token["content"])
    is_byte_level = "Ġ" in held["model"]["vocab"] or "Ċ" in held["model"]["vocab"]
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": _METASPACE}
    cut = held["pre_tokenizer"] if is_byte_level else None
    return Tokenizer.from_str(
        json.dumps({**held, "normalizer": None if is_byte_level else spaces, "pre_tokenizer": cut})
    )


def _is_marker(token: str) -> bool:
    return _MARKER.fullmatch(token.replace(_METASPACE, " ")) is not None


def _field(fields: Mapping[str, Any], own: str, name: str) -> Any:
    value = fields.get(f"tokenizer.ggml.{own}")
    if value is None:
        raise ModelError(f"{name} does not say its tokenizer's {own}: pull or copy the model again.")
    return value


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right
