"""How a coder's context is laid out in tokens: what stays first, the prefix last, so that typing appends."""

from __future__ import annotations

from collections.abc import Sequence

from engine.models.causal.opening import FimTokens

FIXED = 3
"""Markers of a context without snippets."""


def context_ids(
    fim: FimTokens, suffix: Sequence[int], prefix: Sequence[int], snippets: Sequence[Sequence[int]] = ()
) -> list[int]:
    """A context that ends at the gap: parts of other files, each behind a separator, what follows the gap, and what
    stands before it. The published order has the prefix before the suffix; then each key would read the suffix anew."""
    before = [token for snippet in snippets for token in (fim.file_separator, *snippet)]
    return [
        *before,
        *([fim.file_separator] if before else ()),
        fim.prefix,
        fim.suffix,
        *suffix,
        fim.middle,
        *prefix,
    ]
