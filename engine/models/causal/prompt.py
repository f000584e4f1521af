"""The prompt of a coder: the suffix comes first and the prefix last, so that typing only appends to the context."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

from engine.common.names import is_name_character
from engine.common.request import FillRequest
from engine.models.base import Prompt
from engine.models.prompts.markers import FimTokens
from engine.models.prompts.text_window import cut_at_cursor
from engine.models.tokenizer import PromptLayout, within
from engine.models.vocabulary import Vocabulary

FIXED = 4
"""Most markers of a context without snippets."""
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
        told = (self.tokenize(f"{snippet.path}\n{snippet.text}\n") for snippet in request.snippets)
        snippets = within(int(limit * _SNIPPET_SHARE), told, lambda ids: len(ids) + 1)
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


def context_ids(
    fim: FimTokens,
    suffix: Sequence[int],
    prefix: Sequence[int],
    snippets: Sequence[Sequence[int]] = (),
    heading: Sequence[int] = (),
) -> list[int]:
    """A context that ends at the gap: `heading` and snippets, each after a separator, the suffix, then the prefix. The
    published order has the prefix before the suffix: then each key would prefill the suffix again."""
    begin = [] if fim.begin is None else [fim.begin]
    separator = [] if fim.file_separator is None else [fim.file_separator]
    files = [token for snippet in snippets for token in (*separator, *snippet)]
    before = [*heading, *files] if files else []
    if fim.middle is None:  # here the prefix is last as published
        return [*begin, *before, fim.suffix, *suffix, fim.prefix, *prefix]
    return [*begin, *before, *(separator if before else ()), fim.prefix, fim.suffix, *suffix, fim.middle, *prefix]
