"""The layout of the bundled model's context in tokens: stable parts first, the prefix last, so that typing appends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

PAD, EOS, BOS, MASK, SUFFIX, PREFIX, SNIPPET = range(7)
LANGUAGES = {"python": 7, "ipython": 7, "javascript": 8, "javascriptreact": 8, "typescript": 9, "typescriptreact": 9}
"""The token that names the language, by LSP identifier; other languages have none."""
END, EDIT, TO, WIDTH, AFTER = range(10, 15)
"""Tokens: after a gap's text; before an edit's old text; between that and the new one; the question how wide a gap is;
before the text after a gap, where the gap is scored."""
EDIT_TOKENS = 24
"""Most tokens of an edit's old text, and of its new one."""
RESERVED = 16
"""Ids below this one are control tokens and never part of a text."""
WIDTHS = (*range(65), *range(72, 129, 8))
"""Gap widths that the causal head distinguishes: the answer to WIDTH is the token RESERVED + the index of the first
width that is wide enough. A canvas that is too wide must be filled, so each trained width has its own token."""


def width_token(tokens: int) -> int:
    """The answer to WIDTH for a gap of so many tokens."""
    return RESERVED + min(bisect_left(WIDTHS, tokens), len(WIDTHS) - 1)


def question(pinned: Sequence[int], length: int) -> list[tuple[int, int]]:
    """The question for the width of a gap after a context of `length` tokens, as tokens with positions: first the text
    after the gap, at positions further away than any gap is wide."""
    return [*((token, length + WIDTHS[-1] + at) for at, token in enumerate((AFTER, *pinned))), (WIDTH, length)]


def gap_tokens(gap: Sequence[int], last: int, length: int) -> list[tuple[int, int]]:
    """The tokens that score a gap, with positions, after that question or right after the context: the context's `last`
    token once more, at its own position, then the gap."""
    return [(token, length - 1 + at) for at, token in enumerate((last, *gap))]


def context_ids(
    language: str,
    later: Sequence[int],
    prefix: Sequence[int],
    snippets: Sequence[Sequence[int]] = (),
    edits: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
) -> list[int]:
    """[<bos> language (<snippet> text)* (<edit> old <to> new)* (<suffix> later)? <prefix> prefix]"""
    ids = [BOS]
    if language in LANGUAGES:
        ids.append(LANGUAGES[language])
    for snippet in snippets:
        ids += [SNIPPET, *snippet]
    for old, new in edits:
        ids += [EDIT, *old, TO, *new]
    if later:
        ids += [SUFFIX, *later]
    return [*ids, PREFIX, *prefix]
