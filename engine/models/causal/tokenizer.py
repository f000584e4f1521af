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

from tokenizers import Tokenizer
from tokenizers.models import BPE

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import Checkpoint, loading, read_json
from engine.models.tokenizer import NORMAL, QWEN2, REST, WORDS, byte_level, pair, sentence_piece, settled, with_added
from engine.models.vocabulary import METASPACE

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_STARCODER = (r"\p{N}", _GPT2)
_CUTS: Mapping[str, Sequence[str]] = {
    "qwen2": QWEN2,
    "gpt-2": (_GPT2,),
    "starcoder": _STARCODER,
    "refact": _STARCODER,
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"),
    "llama-bpe": (rf"{WORDS}|\p{{N}}{{1,3}}|{REST}",),
}
"""The patterns by which each kind of byte-level tokenizer splits a text before it merges bytes, in order."""
_WHOLE_WORDS = {"llama-bpe"}
"""Kinds that encode a word of the vocabulary as one token, whatever the merges say."""
_MARKER = re.compile(r"\s*[<\[].*[>\]]\s*", re.DOTALL)


def read_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer of a checkpoint. Raises ModelError for an unknown kind, or one that contradicts itself."""
    with loading(f"The tokenizer of {checkpoint.name}"):
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
        normal = {token: at for token, at in vocabulary.items() if kinds[at] == NORMAL}
        tokenizer = sentence_piece(tokens, kinds, _merges(normal, _field(fields, "scores", name)))
    else:
        raise ModelError(
            f"{name} has a tokenizer of the model {str(model)[:80]!r}, which dg-lsp can't build: use another."
        )
    return with_added(tokenizer, tokens, kinds, _is_marker)


def _byte_level(fields: Mapping[str, Any], vocabulary: dict[str, int], name: str) -> Tokenizer:
    kind = fields.get("tokenizer.ggml.pre", "gpt-2")
    cuts = _CUTS.get(kind)
    if cuts is None:
        raise ModelError(
            f"{name} has a tokenizer of the kind {str(kind)[:80]!r}, and dg-lsp knows {', '.join(_CUTS)}: use another."
        )
    merges = [pair(merge) for merge in _field(fields, "merges", name)]
    return byte_level(BPE(vocab=vocabulary, merges=merges, ignore_merges=kind in _WHOLE_WORDS), cuts)


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
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": METASPACE}
    cut = held["pre_tokenizer"] if is_byte_level else None
    return Tokenizer.from_str(
        json.dumps({**held, "normalizer": None if is_byte_level else spaces, "pre_tokenizer": cut})
    )


def _is_marker(token: str) -> bool:
    return _MARKER.fullmatch(token.replace(METASPACE, " ")) is not None


def _field(fields: Mapping[str, Any], own: str, name: str) -> Any:
    value = fields.get(f"tokenizer.ggml.{own}")
    if value is None:
        raise ModelError(f"{name} does not say its tokenizer's {own}: pull or copy the model again.")
    return value
