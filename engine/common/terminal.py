"""Makes untrusted names and texts safe for a terminal. Standard library only."""

from __future__ import annotations

import sys

_KEPT = "\t\n"
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Direction marks, which change the order of text (Unicode, annex 9)."""
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
"""To a terminal, those from 0x80 on equal an escape and a letter."""


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


DIRECTIONS = {code: _escape(code) for code in _DIRECTIONS}
_IN_NAMES = {code: _escape(code) for code in _CONTROLS} | DIRECTIONS
_IN_TEXTS = {code: escape for code, escape in _IN_NAMES.items() if chr(code) not in _KEPT}


def shown(text: str) -> str:
    """Text of several lines, with escapes for control characters and direction marks."""
    return text.translate(_IN_TEXTS)


def shown_name(name: str) -> str:
    """The same for text on one line."""
    return name.translate(_IN_NAMES)


def is_read_here() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()  # no stream where there is no console
