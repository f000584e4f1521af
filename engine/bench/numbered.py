"""Text for models without a tokenizer: every token is its own number, written out."""

from __future__ import annotations

from engine.core.request import FillRequest
from engine.models.base import Prompt
from engine.models.vocabulary import Vocabulary


class NumberedVocabulary(Vocabulary):
    """Token 7 is spelled "7 "; the padding token 0 says nothing."""

    def __init__(self, size: int) -> None:
        super().__init__([b"", *(f"{token} ".encode() for token in range(1, size))])


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
