"""Formatting of text for people."""

from __future__ import annotations

import textwrap

WIDTH = 80
"""Width of a narrow terminal."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: "1 token", "5,000 tokens"."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def wrapped(text: str, lead: str = "", indent: int = 0) -> str:
    """Lines of at most WIDTH after a `lead`, with a hanging indent; words and paths stay whole."""
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * (indent or len(lead)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) or lead.rstrip()


def joined(parts: list[str], between: str) -> str:
    """Parts in lines of at most WIDTH; a longer part has its own line."""
    lines = parts[:1]
    for part in parts[1:]:
        if len(lines[-1]) + len(between) + len(part) <= WIDTH:
            lines[-1] += between + part
        else:
            lines.append(part)
    return "\n".join(lines)
