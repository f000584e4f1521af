"""The tokens of an edited text: where each stands, and which may change."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from engine.fill.gap import Gap
from engine.models.base import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class OldTokens:
    """Tokens of `prompt.head` and of the old text after it; T of them."""

    ids: tuple[int, ...]
    bounds: tuple[int, ...]
    """T + 1 offsets in the old text: token T stands from bound T to bound T + 1. Negative in the head."""
    kept: tuple[bool, ...]
    """Which tokens must stay: those of the head, and those that reach into a kept span."""


def old_tokens(gap: Gap, old: str, keep: Sequence[tuple[int, int]] = ()) -> OldTokens:
    """The tokens of `old` where the gap is; `keep` are spans of it."""
    head = len(gap.prompt.head)
    ids = gap.model.tokenize(gap.prompt.head + old)
    bounds = [at - head for at in token_bounds(gap.model, ids)]
    stays = [(-head, 0), *keep]
    return OldTokens(
        ids=tuple(ids),
        bounds=tuple(bounds),
        kept=tuple(any(_meet(bounds[at], bounds[at + 1], *span) for span in stays) for at in range(len(ids))),
    )


def token_bounds(model: Model, ids: Sequence[int]) -> list[int]:
    """The number of whole characters in the first 0, 1, 2, ... tokens."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [0, *accumulate(len(decoder.decode(model.vocabulary.bytes[token])) for token in ids)]


def _meet(start: int, end: int, first: int, last: int) -> bool:
    """Whether two spans share a character; a token that completes none counts at its place."""
    return first < last and start < last and (end > first or start == end >= first)
