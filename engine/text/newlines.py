"""Line ends of an edited text: those of lines that did not change stay, new lines end like most."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from engine.models.prompts.window import with_line_feeds
from engine.text.marked import with_line_ends

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""Lines that end as an editor's do, unlike those of `str.splitlines`."""


def with_old_line_ends(old: str, new: str, line_end: str) -> str:
    """`new`, written with line feeds, with the line ends that its unchanged lines have in `old`."""
    if "\r" not in old:
        return with_line_ends(new, line_end)
    before, after = _LINE.findall(old), _LINE.findall(new)
    plain = [with_line_feeds(line) for line in before]
    pieces: list[str] = []
    for tag, first, last, start, end in SequenceMatcher(None, plain, after, autojunk=False).get_opcodes():
        same = tag == "equal"
        pieces += before[first:last] if same else [with_line_ends(line, line_end) for line in after[start:end]]
    return "".join(pieces)
