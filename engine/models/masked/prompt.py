"""The prompt of masked-diffusion coders: the text itself, [snippets | prefix] and [gap | suffix]."""

from __future__ import annotations

from tokenizers import Tokenizer

from engine.common.request import FillRequest
from engine.models.base import Prompt
from engine.models.masked.description import Described
from engine.models.prompts.text_window import cut_at_cursor
from engine.models.tokenizer import PromptLayout, within
from engine.models.vocabulary import Vocabulary

_SUFFIX_SHARE, _SNIPPET_SHARE = 0.25, 0.15
"""Shares of what the model can read. Half of it is before the gap; the gap has what is left of the other half."""


class MaskedPrompt(PromptLayout):
    def __init__(
        self, tokenizer: Tokenizer, vocabulary: Vocabulary, described: Described, *, cut_anywhere: bool
    ) -> None:
        """`cut_anywhere`: whether the model was trained on texts cut inside tokens."""
        super().__init__(tokenizer, vocabulary, described.published.context)
        self._begin = () if described.begin is None else (described.begin,)
        self._end = (described.end,) if described.published.ends_suffix else ()
        self._cut_anywhere = cut_anywhere

    def lay_out(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """The context ends at the gap or a token before it; as much suffix as fits is pinned. `limit`: tokens in all,
        in place of the checkpoint's own."""
        limit = limit or self._limit
        room = int(limit * _SUFFIX_SHARE)
        suffix, complete = self.after(request, room)
        end = self._end if complete and len(suffix) < room else ()
        told = (self.tokenize(f"# {snippet.path}\n{snippet.text}\n\n") for snippet in request.snippets)
        snippets = [token for ids in within(int(limit * _SNIPPET_SHARE), told, len) for token in ids]
        kept, head = self.before(request, limit // 2 - len(snippets) - len(self._begin)), ""
        if not self._cut_anywhere:
            kept, head = cut_at_cursor(kept, self.vocabulary)
        return Prompt(context=(*self._begin, *snippets, *kept), suffix=(*suffix[: room - 1], *end), head=head)
