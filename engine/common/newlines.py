"""Line ends of a text, and how a new text adopts them."""

from __future__ import annotations

import re

from engine.common.changes import changed
from engine.common.line_ends import LINE_END

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines(text: str) -> list[str]:
    """The lines of a text with their ends, split as in editors, unlike `str.splitlines`."""
    return _LINE.findall(text)


def dominant_line_end(text: str) -> str:
    r"""The most frequent line end of a text: "\n", "\r\n" or "\r"; "\n" where it has none."""
    counts = _line_ends(text)
    return max(counts, key=lambda end: counts[end])


def with_line_ends(text: str, line_end: str) -> str:
    plain = with_line_feeds(text)
    return plain if line_end == "\n" else plain.replace("\n", line_end)


def with_line_feeds(text: str) -> str:
    """A text with line feeds only, as models are trained on."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def with_old_line_ends(old: str, new: str, line_end: str) -> str:
    """`new`, written with line feeds, with the line ends that its unchanged lines have in `old`."""
    if all(end == line_end or not count for end, count in _line_ends(old).items()):
        return with_line_ends(new, line_end)
    before, after = lines(old), lines(new)
    pieces, at = list[str](), 0
    for first, last, start, end in changed([with_line_feeds(line) for line in before], after):
        pieces += [*before[at:first], *(with_line_ends(line, line_end) for line in after[start:end])]
        at = last
    return "".join(pieces + before[at:])


def emptied(before: str, blank: str, after: str) -> str:
    """What is left of a selection between two texts once its code is gone: whole lines go with their indentation and
    their ends, and what stood on two lines stays on two. `blank`: the white space at the selection's ends."""
    starts, stops = before[-1:] in ("", "\n", "\r"), after[:1] in ("", "\n", "\r")
    ends = list(LINE_END.finditer(blank))
    if not ends:
        return "" if starts and stops else blank
    rest = "" if stops else blank[ends[-1].end() :]
    return rest if starts or stops else ends[-1][0] + rest


def _line_ends(text: str) -> dict[str, int]:
    windows = text.count("\r\n")
    return {"\n": text.count("\n") - windows, "\r\n": windows, "\r": text.count("\r") - windows}
