"""Text for models without a tokenizer: every token is its own number, written out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from engine.core.request import FillRequest
from engine.models.base import Prompt


class NumberedVocabulary:
    """Token 7 is spelled "7 "; the padding token 0 says nothing."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.with_line_break: list[int] = []

    @cached_property
    def bytes(self) -> list[bytes]:
        return [b"", *(f"{token} ".encode() for token in range(1, self.size))]

    def text(self, ids: Sequence[int]) -> str:
        return "".join(f"{token} " for token in ids if token)

    def agreeing(self, head: bytes) -> list[int]:
        """None: a prompt of numbers takes nothing back."""
        return []


class NumberedPrompt:
    """Lays out requests whose texts are numbers: [prefix] and [gap | near suffix]."""

    def __init__(self, vocab_size: int, *, limit: int, pinned: int) -> None:
        self.vocabulary = NumberedVocabulary(vocab_size)
        self._limit, self._pinned = limit, pinned

    def tokenize(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def lay_out(self, request: FillRequest) -> Prompt:
        return Prompt(
            context=tuple(self.tokenize(request.prefix)[-self._limit :]),
            suffix=tuple(self.tokenize(request.suffix)[: self._pinned]),
        )
