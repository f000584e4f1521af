"""The part of a long file that a model reads: near the gap, cut at lines, moved in leaps so that caches survive typing,
and cut at the cursor so that no token straddles it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.models.vocabulary import Vocabulary

CHARACTERS = 4
"""Most characters that are tokenized for each token."""
_LEAPS = 4
"""A full window gives up this fraction of its size at once, not a token at each keystroke."""
_LONGEST_CHARACTER = 4
"""Most bytes of a character in UTF-8, and so most tokens."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def before_gap(prefix: str, characters: int) -> str:
    """The end of `prefix`, at most `characters` long, from a line's beginning if one is there."""
    start = _start(len(prefix), characters)
    line = prefix.find("\n", start, start + characters // _LEAPS) if start else -1
    return prefix[line + 1 if line >= 0 else start :]


def last_tokens(ids: Sequence[int], room: int) -> Sequence[int]:
    """The end of `ids`, at most `room` long."""
    return ids[_start(len(ids), room) :]


def _start(length: int, room: int) -> int:
    """The beginning of a window of at most `room`; it moves in leaps while the length grows."""
    excess = length - room
    leap = max(1, room // _LEAPS)
    return -(-excess // leap) * leap if excess > 0 else 0


def cut_at_cursor(ids: Sequence[int], vocabulary: Vocabulary) -> tuple[Sequence[int], str]:
    """The tokens before a gap, and the text of the last ones, which are taken back: the last token may go on after the
    cursor, and the gap must begin with whole characters."""
    for taken in range(1, min(len(ids), _LONGEST_CHARACTER) + 1):
        kept = ids[: len(ids) - taken]
        head = vocabulary.text(ids[len(ids) - taken :])
        if _REPLACEMENT not in head:
            return kept, head
    return ids, ""
