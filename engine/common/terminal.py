"""What names and texts of unknown origin may do to a terminal: be read. Standard library only."""

from __future__ import annotations

import sys

_KEPT = "\t\n"
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that let what follows stand before what precedes (Unicode, annex 9)."""
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
"""Those from 0x80 on are to a terminal what an escape and a letter are."""


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


DIRECTIONS = {code: _escape(code) for code in _DIRECTIONS}
_IN_NAMES = {code: _escape(code) for code in _CONTROLS} | DIRECTIONS
_IN_TEXTS = {code: escape for code, escape in _IN_NAMES.items() if chr(code) not in _KEPT}


def shown(text: str) -> str:
    """Text of several lines, its controls and marks of direction as escapes."""
    return text.translate(_IN_TEXTS)


def shown_name(name: str) -> str:
    """The same of what is to stand in one line."""
    return name.translate(_IN_NAMES)


def is_read_here() -> bool:
    """Whether a person reads standard output; else a program does, to which bytes are bytes."""
    return sys.stdout is not None and sys.stdout.isatty()  # no stream where there is no console
