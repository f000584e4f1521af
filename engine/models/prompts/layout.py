"""How the bundled model's context is laid out in tokens: stable parts first, the prefix last, so that typing
appends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

PAD, EOS, BOS, MASK, SUFFIX, PREFIX, SNIPPET = range(7)
LANGUAGES = {"python": 7, "ipython": 7, "javascript": 8, "javascriptreact": 8, "typescript": 9, "typescriptreact": 9}
"""The token that names the language, by LSP identifier; other languages have none."""
END, EDIT, TO, WIDTH, BEHIND = range(10, 15)
"""After a gap's text; before an edit's old text, and between it and the new one; to ask how wide a gap is; where a gap
is read, before what stands after it."""
EDIT_TOKENS = 24
"""Of an edit's old text and of its new one, at the most."""
RESERVED = 16
"""Ids below this one are control tokens and never part of a text."""
WIDTHS = (*range(65), *range(72, 129, 8))
"""Gap widths in tokens that the causal head tells apart: the answer to WIDTH is the token RESERVED + the index of the
first that is wide enough. As a canvas that is too wide must be filled, each width that is trained is told exactly."""


def width_token(tokens: int) -> int:
    """The answer to WIDTH for a gap of so many tokens."""
    return RESERVED + min(bisect_left(WIDTHS, tokens), len(WIDTHS) - 1)


def question(pinned: Sequence[int], length: int) -> list[tuple[int, int]]:
    """How the width of a gap is asked for after a context of `length` tokens, each token and its position: first what
    stands after the gap, as far after as no gap is wide."""
    return [*((token, length + WIDTHS[-1] + at) for at, token in enumerate((BEHIND, *pinned))), (WIDTH, length)]


def reading(gap: Sequence[int], last: int, length: int) -> list[tuple[int, int]]:
    """How a gap is read after that, or just after the context: the `last` token of the context once more, as if it
    had been read after the question, and the gap."""
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
