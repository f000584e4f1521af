"""What the families' tokenizers and prompts share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tokenizers import Tokenizer

from engine.common.request import FillRequest
from engine.models.base import Prompt
from engine.models.checkpoints.directory import Checkpoint, read_text, reading
from engine.models.prompts.window import CHARACTERS, before_gap, last_tokens
from engine.models.vocabulary import Vocabulary

_SAMPLE = "def f(x):\n    return '😋' + x\n"


def read_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer of a tokenizer.json. Raises ModelError."""
    with reading(f"The tokenizer of {checkpoint.name}"):
        return settled(Tokenizer.from_str(read_text(checkpoint.path / "tokenizer.json", checkpoint.name)))


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
