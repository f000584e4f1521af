"""The prompt of a coder: the suffix comes first and the prefix last, so that typing only appends to the context."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

from engine.common.names import is_name_character
from engine.common.request import FillRequest
from engine.models.base import Prompt
from engine.models.causal.layout import FIXED, context_ids
from engine.models.causal.opening import FimTokens
from engine.models.prompts.window import cut_at_cursor
from engine.models.tokenizer import PromptLayout
from engine.models.vocabulary import Vocabulary

PINNED = 48
"""Suffix tokens by which the end of an answer is judged."""
_WORD = 24
"""Characters of an unfinished word from which on no more of it is moved from the context to `Prompt.head`."""
_REPOSITORY = "workspace"
"""The name of every repository, as requests don't tell it."""
_SUFFIX_SHARE, _SNIPPET_SHARE = 0.2, 0.25


class CausalPrompt(PromptLayout):
    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, fim: FimTokens, limit: int) -> None:
        super().__init__(tokenizer, vocabulary, limit)
        self.fim = fim
        named = self.tokenize(_REPOSITORY + fim.dialect.repository_end)
        self._heading = [] if fim.repository is None else [fim.repository, *named]

    def lay_out(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """Context [heading and snippets | suffix | prefix], and the suffix's first tokens. `limit`: most tokens of the
        context, in place of the model's own."""
        limit = limit or self._limit
        room = int(limit * _SUFFIX_SHARE)
        following = self.after(request, room)[0][:room]
        snippets = self._snippets(request, int(limit * _SNIPPET_SHARE))
        used = sum(len(each) + 1 for each in snippets) + FIXED + len(following)
        used += (len(self._heading) + 1) * bool(snippets)
        before = self.before(request, limit - used)
        # No token begins with a line break that ends the prefix: taken back, the model would write more of them.
        at_line = request.prefix[-1:] == "\n"
        kept, head = (before, "") if at_line else self._before_word(*cut_at_cursor(before, self.vocabulary))
        return Prompt(
            context=tuple(context_ids(self.fim, following, kept, snippets, self._heading)),
            suffix=tuple(following[:PINNED]),
            head=head,
        )

    def _before_word(self, kept: Sequence[int], head: str) -> tuple[Sequence[int], str]:
        """Tokens before the word at the cursor, and that word's beginning as text: its tokens change as it is typed
        (`.re|a`, then `.read|lines`)."""
        while kept and len(head) < _WORD and (piece := self.vocabulary.text(kept[-1:])):
            if not (is_name_character(piece[-1]) and is_name_character(head[:1])):
                break
            kept, head = kept[:-1], piece + head
        return kept, head

    def _snippets(self, request: FillRequest, room: int) -> list[list[int]]:
        chosen: list[list[int]] = []
        for snippet in request.snippets:
            ids = self.tokenize(f"{snippet.path}\n{snippet.text}\n")
            room -= len(ids) + 1
            if room < 0:
                break
            chosen.append(ids)
        return chosen
