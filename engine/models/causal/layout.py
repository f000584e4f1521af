"""The order of a coder's context in tokens: the prefix comes last, so that typing only appends."""

from __future__ import annotations

from collections.abc import Sequence

from engine.models.causal.opening import FimTokens

FIXED = 4
"""Most markers of a context without snippets."""


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
