"""Regular expressions of JavaScript: grammars take any text between the slashes, the language does not."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""
    (?P<escape> \\ (?: u\{[0-9A-Fa-f]+\} | u[0-9A-Fa-f]{4} | x[0-9A-Fa-f]{2} | c[A-Za-z] | . ) )
    | (?P<open> \( (?: \?(?: [:=!] | <[=!] | <[^>]{0,100}+> | [a-z-]+: ) )? )
    | (?P<times> [*+?]\?? | \{\d+(?:,\d*)?\}\?? )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN_ESCAPES = {"n": 10, "r": 13, "t": 9, "v": 11, "f": 12, "0": 0}


def is_bad_regex(pattern: str) -> bool:
    """Whether a pattern has brackets that don't pair, nothing to repeat, or a range that runs backwards."""
    depth, at, repeatable = 0, 0, False
    while at < len(pattern):
        if pattern[at] == "[":
            end = _end_of_class(pattern, at + 1)
            if end is None:
                return True
            at, repeatable = end, True
            continue
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return True
        kind, text, at = piece.lastgroup, piece.group(), piece.end()
        if kind == "times" and not repeatable:
            return True
        depth += (kind == "open") - (text == ")")
        if depth < 0:
            return True
        repeatable = kind == "escape" or (kind == "other" and text not in "|^$")
    return depth > 0


def _end_of_class(pattern: str, at: int) -> int | None:
    """Behind the bracket that closes a class; None if there is none, or a range runs backwards."""
    low: int | None = None
    dash = False
    while at < len(pattern):
        if pattern[at] == "]":
            return at + 1
        piece = _PIECE.match(pattern, at) if pattern[at] == "\\" else None
        text = piece.group() if piece else pattern[at]
        at += len(text)
        if text == "-" and low is not None and not dash:
            dash = True
            continue
        code = _code(text)
        if dash and low is not None and code is not None and code < low:
            return None
        low, dash = (None, False) if dash else (code, False)
    return None


def _code(text: str) -> int | None:
    """The character that a piece of a class stands for; None for a set of them."""
    if len(text) == 1:
        return ord(text)
    if text[1] in "xu" and len(text) > 3:
        return int(text[2:].strip("{}"), 16)
    if text[1] in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[text[1]]
    return None if text[1].isalnum() else ord(text[1])
