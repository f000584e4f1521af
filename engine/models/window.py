"""Which part of a long file a model reads: near the gap, cut at lines, and moving in leaps so that caches survive
typing.
"""

from __future__ import annotations

_LEAPS = 4
"""A window that is full gives up this fraction of its size at once, not a token at each keystroke."""


def before_gap(prefix: str, characters: int) -> str:
    """The end of `prefix`, at most `characters` long, beginning at a line where one begins there."""
    excess = len(prefix) - characters
    if excess <= 0:
        return prefix
    leap = max(1, characters // _LEAPS)
    start = -(-excess // leap) * leap
    line = prefix.find("\n", start, start + leap)
    return prefix[line + 1 if line >= 0 else start :]


def behind_gap(suffix: str, characters: int) -> str:
    """The beginning of `suffix`, at most `characters` long."""
    return suffix[:characters]


def with_line_feeds(text: str) -> str:
    """Models are trained on line feeds alone; a carriage return is part of the line break that it stands for."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
