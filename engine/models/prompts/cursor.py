"""Where a text is cut at the cursor: no token may straddle it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.models.vocabulary import Vocabulary

_LONGEST_CHARACTER = 4
"""Bytes of UTF-8, and so tokens at the most."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def cut_at_cursor(ids: Sequence[int], vocabulary: Vocabulary) -> tuple[Sequence[int], str]:
    """Tokens that stay before a gap, and the text of the last ones, which are taken back: the last token may go on
    behind the cursor, and the gap must begin with whole characters."""
    for taken in range(1, min(len(ids), _LONGEST_CHARACTER) + 1):
        kept = ids[: len(ids) - taken]
        head = vocabulary.text(ids[len(ids) - taken :])
        if _REPLACEMENT not in head:
            return kept, head
    return ids, ""
