"""What the families' tokenizers and prompts share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, normalizers
from tokenizers.models import BPE

from engine.common.errors import ModelError
from engine.common.request import FillRequest
from engine.models.base import Prompt
from engine.models.checkpoints.directory import Checkpoint, read_text, reading
from engine.models.prompts.window import CHARACTERS, before_gap, last_tokens
from engine.models.vocabulary import METASPACE, Vocabulary

_NORMAL, _UNKNOWN, _USER, _BYTE = 1, 2, 4, 6
"""Of `tokenizer.ggml.token_type`."""
_CONTROL = re.compile(r"<\|.*>|<.*\|>")
_SAMPLE = "def f(x):\n    return '😋' + x\n"


def read_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer of a tokenizer.json, or of a GGUF of Gemma 4's kind. Raises ModelError."""
    with reading(f"The tokenizer of {checkpoint.name}"):
        if checkpoint.fields:
            return settled(_gemma4(checkpoint.fields, checkpoint.name))
        return settled(Tokenizer.from_str(read_text(checkpoint.path / "tokenizer.json", checkpoint.name)))


def _gemma4(fields: Mapping[str, Any], name: str) -> Tokenizer:
    """SentencePiece's pieces, put together by merges, and bytes for what is in none."""
    model = fields.get("tokenizer.ggml.model")
    if model != "gemma4":
        raise ModelError(f"{name} has a tokenizer of the model {str(model)[:80]!r}, and its class has gemma4's.")
    said = {own: fields.get(f"tokenizer.ggml.{own}") for own in ("tokens", "token_type", "merges")}
    tokens, kinds, merges = said.values()
    if tokens is None or kinds is None or merges is None or len(kinds) != len(tokens):
        raise ModelError(f"{name} contradicts itself about its tokens: pull or copy the model again.")
    by_kind = list(zip(tokens, kinds, strict=True))
    unknown = next((token for token, kind in by_kind if kind == _UNKNOWN), None)
    vocabulary = {token: at for at, token in enumerate(tokens)}
    pairs = [_pair(merge) for merge in merges]
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=pairs, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", METASPACE)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(METASPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    others = [(token, kind) for token, kind in by_kind if kind not in (_NORMAL, _BYTE)]
    # Some control tokens are called text there, so that a chat shows them.
    special = dict.fromkeys(token for token, kind in others if kind != _USER or _CONTROL.fullmatch(token))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, _ in others if token not in special])
    return tokenizer


def _pair(merge: str) -> tuple[str, str]:
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
