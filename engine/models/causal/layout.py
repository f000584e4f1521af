"""How a coder's context is laid out in tokens: what stays first, the prefix last, so that typing appends."""

from __future__ import annotations

from collections.abc import Sequence

from engine.models.causal.opening import FimTokens

FIXED = 4
"""Markers of a context without snippets, at the most."""


def context_ids(
    fim: FimTokens, suffix: Sequence[int], prefix: Sequence[int], snippets: Sequence[Sequence[int]] = ()
) -> list[int]:
    """A context that ends at the gap: parts of other files, each after a separator, what follows the gap, and what
    stands before it. The published order has the prefix before the suffix; then each key would read the suffix anew."""
    begin = [] if fim.begin is None else [fim.begin]
    separator = [] if fim.file_separator is None else [fim.file_separator]
    before = [token for snippet in snippets for token in (*separator, *snippet)]
    if fim.middle is None:  # here the prefix is last as published
        return [*begin, *before, fim.suffix, *suffix, fim.prefix, *prefix]
    return [*begin, *before, *(separator if before else ()), fim.prefix, fim.suffix, *suffix, fim.middle, *prefix]
