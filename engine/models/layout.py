"""How the bundled model's context is laid out in tokens: stable parts first, the prefix last, so that typing
appends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PAD, EOS, BOS, MASK, SUFFIX, PREFIX, SNIPPET = range(7)
LANGUAGES = {"python": 7, "javascript": 8, "javascriptreact": 8, "typescript": 9, "typescriptreact": 9}
"""The token that names the language, by LSP identifier; other languages have none."""
RESERVED = 16
"""Ids below this one are control tokens and never part of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The token ids between the parts of a context."""

    bos: int = BOS
    suffix: int = SUFFIX
    prefix: int = PREFIX
    snippet: int = SNIPPET

    def context(
        self, language: str, later: Sequence[int], prefix: Sequence[int], snippets: Sequence[Sequence[int]] = ()
    ) -> list[int]:
        """[<bos> language (<snippet> text)* (<suffix> later)? <prefix> prefix]"""
        ids = [self.bos]
        if language in LANGUAGES:
            ids.append(LANGUAGES[language])
        for snippet in snippets:
            ids += [self.snippet, *snippet]
        if later:
            ids += [self.suffix, *later]
        return [*ids, self.prefix, *prefix]
