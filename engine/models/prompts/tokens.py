"""The prompt of the bundled model: parts told apart by control tokens, and cut exactly at the cursor.

The model was trained on texts cut at any character, so the prefix is tokenized as it stands and nothing needs
to be taken back: see engine.train.canvases, which lays out its canvases in the same way.
"""

from __future__ import annotations

from tokenizers import Tokenizer

from engine.core.request import FillRequest
from engine.models.base import Prompt
from engine.models.prompts.layout import EOS, Layout
from engine.models.prompts.window import before_gap, behind_gap, last_tokens
from engine.models.vocabulary import Vocabulary
from engine.text.newlines import with_line_feeds

PINNED = 32
"""Suffix tokens on the canvas, of models that were trained with the suffix on the canvas alone."""
_CHARACTERS = 4
"""Per token, at the most that is worth tokenizing."""
_LATER_SHARE, _SNIPPET_SHARE = 0.2, 0.2
"""Of the context, for the suffix and for other files."""


class TokenPrompt:
    """Lays out requests for the bundled model."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, limit: int, pinned: int | None = None) -> None:
        """`pinned`: suffix tokens on the canvas of a model whose context holds the suffix from the gap on; None: the
        context goes on where the canvas ends."""
        self._pinned, self._repeated = pinned or PINNED, pinned is not None
        self.vocabulary = vocabulary
        self._tokenizer = tokenizer
        self._limit = limit
        self._layout = Layout()

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`, without control tokens."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def lay_out(self, request: FillRequest) -> Prompt:
        """[snippets | suffix | prefix] and [gap | near suffix]."""
        later_room, snippet_room = int(self._limit * _LATER_SHARE), int(self._limit * _SNIPPET_SHARE)
        after = behind_gap(request.suffix, (self._pinned + later_room) * _CHARACTERS)
        suffix = self.tokenize(with_line_feeds(after))
        if len(after) >= len(request.suffix) and (self._repeated or len(suffix) < self._pinned):
            suffix.append(EOS)
        near, first = suffix[: self._pinned], 0 if self._repeated else self._pinned
        later = suffix[first : first + later_room]
        snippets = self._snippets(request, snippet_room)
        room = self._limit - later_room - (snippet_room if snippets else 0)
        before = with_line_feeds(before_gap(request.prefix, room * _CHARACTERS * 3 // 4))
        prefix = last_tokens(self.tokenize(before), room)
        return Prompt(
            context=tuple(self._layout.context(request.language, later, prefix, snippets)),
            suffix=tuple(near),
        )

    def _snippets(self, request: FillRequest, room: int) -> list[list[int]]:
        chosen: list[list[int]] = []
        for snippet in request.snippets:
            ids = self.tokenize(with_line_feeds(snippet.text[: room * _CHARACTERS]))[:room]
            if not ids:
                break
            chosen.append(ids)
            room -= len(ids)
        return chosen
