"""What every family does with text: its vocabulary's spelling and its prompt's layout, behind the names of `Model`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tokenizers import Tokenizer

from engine.checkpoints.directory import Checkpoint, read_text, reading
from engine.core.request import FillRequest
from engine.models.base import Prompt
from engine.models.vocabulary import Vocabulary

_SAMPLE = "def f(x):\n    return '😋' + x\n"


def read_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """That of a tokenizer.json. Raises ModelError."""
    with reading(f"The tokenizer of {checkpoint.name}"):
        return settled(Tokenizer.from_str(read_text(checkpoint.path / "tokenizer.json", checkpoint.name)))


def settled(tokenizer: Tokenizer) -> Tokenizer:
    """It neither cuts nor pads, whatever its file says, a control token's name in a text is text, and it was tried."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    tokenizer.encode(_SAMPLE, add_special_tokens=False)
    return tokenizer


class PromptLayout(Protocol):
    """How a checkpoint wants its requests."""

    vocabulary: Vocabulary

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`, without control tokens."""
        ...

    def lay_out(self, request: FillRequest) -> Prompt:
        """Context and pinned suffix of a request."""
        ...


class Texts:
    """The text side of a `Model`."""

    def __init__(self, layout: PromptLayout) -> None:
        self.vocabulary = layout.vocabulary
        self._layout = layout

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`; a control token's name in it is plain text."""
        return self._layout.tokenize(text)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Text of `ids`; control tokens have none."""
        return self.vocabulary.text(ids)

    def prompt(self, request: FillRequest) -> Prompt:
        """Context and pinned suffix of a request."""
        return self._layout.lay_out(request)
