"""What the families' tokenizers and prompts share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from engine.common.errors import ModelError
from engine.common.request import FillRequest
from engine.models.base import Prompt
from engine.models.checkpoints.directory import Checkpoint, loading, read_text
from engine.models.prompts.text_window import CHARACTERS, before_gap, last_tokens
from engine.models.vocabulary import METASPACE, Vocabulary

T = TypeVar("T")
NORMAL, _UNKNOWN, _USER, _BYTE = 1, 2, 4, 6
"""Of `tokenizer.ggml.token_type`."""
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = (rf"{WORDS}|\p{{N}}|{REST}",)
"""Qwen2's split of a text before merging: https://github.com/QwenLM/Qwen/blob/main/tokenization_note.md"""
_CONTROL = re.compile(r"<\|.*>|<.*\|>")
_SAMPLE = "def f(x):\n    return '😋' + x\n"


def read_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer of a tokenizer.json, or of a GGUF of Gemma 4's kind. Raises ModelError."""
    with loading(f"The tokenizer of {checkpoint.name}"):
        if checkpoint.fields:
            return settled(_gemma4(checkpoint.fields, checkpoint.name))
        return settled(Tokenizer.from_str(read_text(checkpoint.path / "tokenizer.json", checkpoint.name)))


def _gemma4(fields: Mapping[str, Any], name: str) -> Tokenizer:
    model = fields.get("tokenizer.ggml.model")
    if model != "gemma4":
        raise ModelError(f"{name} has a tokenizer of the model {str(model)[:80]!r}, and its class has gemma4's.")
    said = {own: fields.get(f"tokenizer.ggml.{own}") for own in ("tokens", "token_type", "merges")}
    tokens, kinds, merges = said.values()
    if tokens is None or kinds is None or merges is None or len(kinds) != len(tokens):
        raise ModelError(f"{name} contradicts itself about its tokens: pull or copy the model again.")
    tokenizer = sentence_piece(tokens, kinds, [pair(merge) for merge in merges])
    # Some control tokens are called text there, so that a chat shows them.
    return with_added(tokenizer, tokens, kinds, lambda token: _CONTROL.fullmatch(token) is not None)


def sentence_piece(tokens: Sequence[str], kinds: Sequence[int], merges: list[tuple[str, str]]) -> Tokenizer:
    """SentencePiece's pieces, put together by merges, and bytes for what is in none."""
    vocabulary = {token: at for at, token in enumerate(tokens)}
    unknown = next((token for token, kind in zip(tokens, kinds, strict=True) if kind == _UNKNOWN), None)
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", METASPACE)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(METASPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def byte_level(model: BPE, cuts: Sequence[str]) -> Tokenizer:
    """A tokenizer that splits a text by these patterns, in order, before it merges bytes."""
    tokenizer = Tokenizer(model)
    splits: list[Any] = [pre_tokenizers.Split(Regex(cut), behavior="isolated") for cut in cuts]
    splits.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def with_added(
    tokenizer: Tokenizer, tokens: Sequence[str], kinds: Sequence[int], is_control: Callable[[str], bool]
) -> Tokenizer:
    """With the tokens that no merge makes: control tokens, which no text has, and texts that are always one token."""
    others = [(token, kind) for token, kind in zip(tokens, kinds, strict=True) if kind not in (NORMAL, _BYTE)]
    special = dict.fromkeys(token for token, kind in others if kind != _USER or is_control(token))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, _ in others if token not in special])
    return tokenizer


def pair(merge: str) -> tuple[str, str]:
    # A piece may begin with a space.
    cut = merge.find(" ", 1)
    return merge[:cut], merge[cut + 1 :]


def settled(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that neither cuts nor pads, whatever its file says, and takes a control token's name in a text for
    text; it was tried."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    tokenizer.encode(_SAMPLE, add_special_tokens=False)
    return tokenizer


def within(room: int, parts: Iterable[T], size: Callable[[T], int]) -> list[T]:
    """The first parts that have room together."""
    chosen: list[T] = []
    for part in parts:
        room -= size(part)
        if room < 0:
            break
        chosen.append(part)
    return chosen


class PromptLayout(ABC):
    """The layout of requests for a checkpoint."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, limit: int) -> None:
        """`limit`: most tokens of context."""
        self.vocabulary = vocabulary
        self._tokenizer = tokenizer
        self._limit = limit

    @abstractmethod
    def lay_out(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """Context and pinned suffix of a request. `limit`: most tokens of context, in place of the checkpoint's own."""

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`; a control token's name in it is plain text."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def before(self, request: FillRequest, room: int) -> Sequence[int]:
        """The end of the text before the gap, at most `room` tokens."""
        text = before_gap(request.prefix, room * CHARACTERS * 3 // 4)
        return last_tokens(self.tokenize(text), room)

    def after(self, request: FillRequest, room: int) -> tuple[list[int], bool]:
        """The beginning of the text after the gap, about `room` tokens, and whether that is all of it."""
        text = request.suffix[: room * CHARACTERS]
        return self.tokenize(text), len(text) == len(request.suffix)
