"""JSON from other programs, read leniently."""

from __future__ import annotations

import json
import re
from typing import Any

UNREADABLE = object()
"""Stands for invalid JSON."""
_ESCAPED_SURROGATES = (b"\\ud", b"\\uD")
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(body: bytes) -> Any:
    """The values in a body, or UNREADABLE. A large one takes a while. Never raises.

    Its texts hold whole characters only. JSON can spell half a surrogate pair, and a careless client encode one, which
    is no character and can't travel further; a replacement that is as wide in every position encoding stands in. JSON
    has one kind of number, so a whole one is an integer however it is written. NaN, which JSON lacks, is nothing.
    """
    try:
        # Not left to `json`, which would take other encodings, too.
        try:
            text, is_whole = body.decode(), not any(escape in body for escape in _ESCAPED_SURROGATES)
        except UnicodeDecodeError:
            text, is_whole = body.decode("utf-8", "surrogatepass"), False
        value = json.loads(text, parse_float=_number, parse_constant=lambda _: None)
        # Written down again, as a pair of two halves is one character by now.
        return value if is_whole else json.loads(_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return UNREADABLE


def _number(written: str) -> float | int:
    value = float(written)
    return int(value) if value.is_integer() else value
