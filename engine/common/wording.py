"""How what is told to people is put."""

from __future__ import annotations

import textwrap

WIDTH = 80
"""Of the narrowest terminal that people use."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things: "1 token", "5,000 tokens"."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def wrapped(text: str, lead: str = "", indent: int = 0) -> str:
    """Lines of WIDTH at most behind a `lead`, those after the first further in; a word or path stays whole."""
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
    """Parts in lines of WIDTH at most; one that is longer has a line of its own."""
    lines = parts[:1]
    for part in parts[1:]:
        if len(lines[-1]) + len(between) + len(part) <= WIDTH:
            lines[-1] += between + part
        else:
            lines.append(part)
    return "\n".join(lines)
