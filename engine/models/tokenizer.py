"""What every family does with text: its vocabulary's spelling and its prompt's layout, behind the names of `Model`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from engine.core.request import FillRequest
from engine.models.base import Prompt
from engine.models.vocabulary import Vocabulary

_SAMPLE = "def f(x):\n    return '😋' + x\n"


def settled(tokenizer: Any) -> Any:
    """A fast tokenizer of transformers that neither cuts nor pads, whatever its file says, and has been tried."""
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    backend.encode(_SAMPLE, add_special_tokens=False)
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

    @property
    def line_breaks(self) -> Sequence[int]:
        """Tokens that hold a line break."""
        return self.vocabulary.with_line_break

    def agreeing(self, head: bytes) -> Sequence[int]:
        """Tokens that begin with `head`, and those that `head` begins with."""
        return self.vocabulary.agreeing(head)

    def spelling(self, token: int) -> bytes:
        """The bytes of one token; none for control tokens."""
        return self.vocabulary.bytes[token]

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`; a control token's name in it is plain text."""
        return self._layout.tokenize(text)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Text of `ids`; control tokens have none."""
        return self.vocabulary.text(ids)

    def prompt(self, request: FillRequest) -> Prompt:
        """Context and pinned suffix of a request."""
        return self._layout.lay_out(request)
