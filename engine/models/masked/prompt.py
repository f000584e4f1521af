"""The prompt of masked-diffusion coders: the text itself, [snippets | prefix] and [gap | suffix]."""

from __future__ import annotations

from tokenizers import Tokenizer

from engine.core.request import FillRequest
from engine.models.base import Prompt
from engine.models.masked.description import Described
from engine.models.prompts.window import before_gap, behind_gap, cut_at_cursor, last_tokens
from engine.models.vocabulary import Vocabulary
from engine.text.newlines import with_line_feeds

_CHARACTERS = 4
"""Per token, at the most that is worth tokenizing."""
_SUFFIX_SHARE, _SNIPPET_SHARE = 0.25, 0.15
"""Of what the model can read. Half of it is before the gap, the gap has the rest of the other half."""


class MaskedPrompt:
    """Lays out requests for one checkpoint."""

    def __init__(
        self, tokenizer: Tokenizer, vocabulary: Vocabulary, described: Described, *, cut_anywhere: bool
    ) -> None:
        """`cut_anywhere`: the model was trained on texts cut inside tokens."""
        self.vocabulary = vocabulary
        self._tokenizer = tokenizer
        self._limit = described.published.context
        self._begin = () if described.begin is None else (described.begin,)
        self._end = (described.end,) if described.published.ends_suffix else ()
        self._cut_anywhere = cut_anywhere

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`; a control token's name in it is plain text."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def lay_out(self, request: FillRequest) -> Prompt:
        """The context ends at the gap or a token before it; as much suffix as there is room for is pinned."""
        suffix, complete = self._suffix(request)
        snippets = self._snippets(request)
        room = self._limit // 2 - len(snippets) - len(self._begin)
        before = with_line_feeds(before_gap(request.prefix, room * _CHARACTERS * 3 // 4))
        kept, head = last_tokens(self.tokenize(before), room), ""
        if not self._cut_anywhere:
            kept, head = cut_at_cursor(kept, self.vocabulary)
        return Prompt(
            context=(*self._begin, *snippets, *kept),
            suffix=(*suffix, *self._end) if complete else tuple(suffix),
            head=head,
        )

    def _suffix(self, request: FillRequest) -> tuple[list[int], bool]:
        room = int(self._limit * _SUFFIX_SHARE)
        after = behind_gap(request.suffix, room * _CHARACTERS)
        ids = self.tokenize(with_line_feeds(after))
        return ids[: room - 1], len(after) >= len(request.suffix) and len(ids) < room

    def _snippets(self, request: FillRequest) -> list[int]:
        room = int(self._limit * _SNIPPET_SHARE)
        chosen: list[int] = []
        for snippet in request.snippets:
            ids = self.tokenize(with_line_feeds(f"# {snippet.path}\n{snippet.text}\n\n"))
            if len(chosen) + len(ids) > room:
                break
            chosen += ids
        return chosen
