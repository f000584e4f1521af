"""The prompt of the bundled model: parts separated by control tokens, the prefix cut exactly at the cursor.

The model was trained on texts cut at any character, so no token before the cursor is taken back: see
engine.learn.canvases, which lays out canvases in the same way.
"""

from __future__ import annotations

from tokenizers import Tokenizer

from engine.common.request import FillRequest
from engine.models.base import Prompt
from engine.models.prompts.layout import EDIT_TOKENS, EOS, context_ids
from engine.models.prompts.text_window import CHARACTERS
from engine.models.tokenizer import PromptLayout, within
from engine.models.vocabulary import Vocabulary

PINNED = 32
"""Suffix tokens on the canvas, for models that were trained with the suffix on the canvas alone."""
_LATER_SHARE, _SNIPPET_SHARE, _EDIT_SHARE = 0.2, 0.2, 0.1
"""Shares of the context for the suffix, for other files and for recent edits."""


class TokenPrompt(PromptLayout):
    def __init__(
        self,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        limit: int,
        *,
        pinned: int | None = None,
        edits: bool | None = None,
    ) -> None:
        """`pinned`: suffix tokens on the canvas of a model whose context holds the suffix from the gap on; None: the
        context goes on where the canvas ends. `edits`: whether the model was trained on recent edits."""
        super().__init__(tokenizer, vocabulary, limit)
        self._pinned, self._repeated = pinned or PINNED, pinned is not None
        self._reads_edits = edits or False

    def lay_out(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """[snippets | edits | suffix | prefix] and [gap | near suffix]. `limit`: most tokens of context, in place of
        the checkpoint's own."""
        limit = limit or self._limit
        later_room, snippet_room = int(limit * _LATER_SHARE), int(limit * _SNIPPET_SHARE)
        suffix, complete = self.after(request, self._pinned + later_room)
        if complete and (self._repeated or len(suffix) < self._pinned):
            suffix.append(EOS)
        near, first = suffix[: self._pinned], 0 if self._repeated else self._pinned
        later = suffix[first : first + later_room]
        snippets = self._snippets(request, snippet_room)
        edits = self._edits(request, int(limit * _EDIT_SHARE)) if self._reads_edits else []
        edit_room = sum(2 + len(old) + len(new) for old, new in edits)
        prefix = self.before(request, limit - later_room - (snippet_room if snippets else 0) - edit_room)
        return Prompt(
            context=tuple(context_ids(request.language, later, prefix, snippets, edits)),
            suffix=tuple(near),
        )

    def _snippets(self, request: FillRequest, room: int) -> list[list[int]]:
        chosen: list[list[int]] = []
        for snippet in request.snippets:
            ids = self.tokenize(snippet.text[: room * CHARACTERS])[:room]
            if not ids:
                break
            chosen.append(ids)
            room -= len(ids)
        return chosen

    def _edits(self, request: FillRequest, room: int) -> list[tuple[list[int], list[int]]]:
        """The newest edits that are short enough, oldest first."""
        told = ((self.tokenize(edit.old), self.tokenize(edit.new)) for edit in reversed(request.edits))
        short = (each for each in told if max(map(len, each)) <= EDIT_TOKENS)
        return within(room, short, lambda each: 2 + sum(map(len, each)))[::-1]
