"""Which part of a long file a model reads: near the gap, cut at lines, and moving in leaps so that caches survive
typing.
"""

from __future__ import annotations

from collections.abc import Sequence

_LEAPS = 4
"""A window that is full gives up this fraction of its size at once, not a token at each keystroke."""


def before_gap(prefix: str, characters: int) -> str:
    """The end of `prefix`, at most `characters` long, beginning at a line where one begins there."""
    start = _start(len(prefix), characters)
    line = prefix.find("\n", start, start + characters // _LEAPS) if start else -1
    return prefix[line + 1 if line >= 0 else start :]


def last_tokens(ids: Sequence[int], room: int) -> Sequence[int]:
    """The end of `ids`, at most `room` long."""
    return ids[_start(len(ids), room) :]


def behind_gap(suffix: str, characters: int) -> str:
    """The beginning of `suffix`, at most `characters` long."""
    return suffix[:characters]


def _start(length: int, room: int) -> int:
    """Where a window of at most `room` begins; it moves in leaps while the length grows."""
    excess = length - room
    leap = max(1, room // _LEAPS)
    return -(-excess // leap) * leap if excess > 0 else 0
