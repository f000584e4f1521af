"""Places where code is still to be written: an empty body, a placeholder, an empty argument list."""

from __future__ import annotations

import re

from engine.common.analysis import Placeholder
from engine.syntax.brackets import Brackets, brackets_near, line_start, statement_start
from engine.syntax.extent import extent
from engine.syntax.languages import PYTHON

_PLACEHOLDER = re.compile(r"[ \t]*(?P<code>(?:pass|\.\.\.|TODO|todo!\(\)|unimplemented!\(\));?)[ \t]*\Z")
_TODO = re.compile(r"[ \t]*(?:#|//|--|;)+[ \t]*(?:TODO|FIXME)\b")
_LINE_END = re.compile(r"[\r\n]")
_INDENT = re.compile(r"[ \t]*")
_EMPTY_CALL = re.compile(r"\(([ \t]*)\)")
_CALL = re.compile(r"[\w)\]>!?]\s*\Z")
_BODY_FOLLOWS = re.compile(r"(?:[)>\w]|^)\s*\Z")
_DEFINES = re.compile(r"\b(?:def|function|func|fn|fun|class|sub|if|elif|while|for|foreach|switch|match|catch|with)\b")


def placeholder_at(text: str, cursor: int, language: str) -> Placeholder | None:
    """The place to fill at a cursor; None where there is none. `language`: `Grammar.name`."""
    around = brackets_near(text[:cursor], text[cursor:], language)
    if around.at_gap.pending and around.at_gap.pending.kind == "string":
        return None
    return (
        _placeholder(text, cursor)
        or _arguments(text, cursor)
        or _braces(text, cursor, around)
        or _todo(text, cursor)
        or _empty_block(text, cursor, language)
    )


def _arguments(text: str, cursor: int) -> Placeholder | None:
    """The empty brackets of a call around the cursor or next to it."""
    found = _EMPTY_CALL.search(text, max(0, text.rfind("(", 0, cursor + 1)))
    if found is None or not found.start() <= cursor <= found.end():
        return None
    line = text[line_start(text, found.start()) : found.start()]
    if not _CALL.search(line) or _DEFINES.search(line.rpartition("=")[2]):
        return None
    return Placeholder(kind="arguments", start=found.start(1), end=found.end(1), single_line=True)


def _braces(text: str, cursor: int, around: Brackets) -> Placeholder | None:
    place = extent(around)
    if place.kind != "block" or place.closer != "}" or not place.closed:
        return None
    opener = around.at_gap.unclosed[-1].start + cursor - len(around.before)
    if not _BODY_FOLLOWS.search(text, line_start(text, opener), opener):
        return None
    before, after = _new_line(text, opener, deeper="  "), _new_line(text, opener)
    return Placeholder(kind="body", start=opener + 1, end=text.index("}", cursor), before=before, after=after)


def _placeholder(text: str, cursor: int) -> Placeholder | None:
    """A line that is only a placeholder, or such an end of a header line."""
    start = line_start(text, cursor)
    line = text[start : _line_end(text, cursor)]
    header = re.match(r".*:(?=[ \t]*(?:pass|\.\.\.)[ \t]*\Z)", line)
    shift = header.end() if header else 0
    found = _PLACEHOLDER.match(line[shift:])
    if found is None:
        return None
    code = start + shift + found.start("code")
    end = code + len(found["code"])
    if not header:
        return Placeholder(kind="placeholder", start=code, end=end)
    return Placeholder(kind="placeholder", start=start + shift, end=end, before=_new_line(text, start, deeper="    "))


def _todo(text: str, cursor: int) -> Placeholder | None:
    """The line below a "to do" comment; the comment stays."""
    start, end = line_start(text, cursor), _line_end(text, cursor)
    if not _TODO.match(text[start:end]):
        return None
    return Placeholder(kind="placeholder", start=end, end=end, before=_new_line(text, start))


def _empty_block(text: str, cursor: int, language: str) -> Placeholder | None:
    """The body below a header without one, at the header or on the blank line below it."""
    if language not in PYTHON:
        return None
    stop = _line_end(text, cursor)
    end = stop if text[line_start(text, cursor) : stop].strip() else len(text[:cursor].rstrip())
    above = text[:end].rstrip()
    if not above.endswith(":"):
        return None
    near = brackets_near(above, "", language).before
    before = _new_line(text, len(above) - len(near) + statement_start(near, language), deeper="    ")
    if extent(brackets_near(above + before, text[end:] or "\n", language)).kind != "block":
        return None
    return Placeholder(kind="body", start=len(above), end=stop, before=before)


def indent_unit(text: str, default: str) -> str:
    """The indentation of a text's blocks, by its first indented line."""
    before = ""
    for line in text.splitlines():
        indent = _INDENT.match(line)
        if indent and line.strip():
            if indent.group() != before and indent.group().startswith(before):
                return indent.group()[len(before) :]
            before = indent.group()
    return default


def _new_line(text: str, at: int, deeper: str = "") -> str:
    """A line break and the indentation of the line at an offset; one level `deeper`, by this much if the text does not
    show it."""
    line_break = "\r\n" if "\r\n" in text else "\n"
    indent = _INDENT.match(text, line_start(text, at))
    return line_break + (indent[0] if indent else "") + (indent_unit(text, deeper) if deeper else "")


def _line_end(text: str, at: int) -> int:
    found = _LINE_END.search(text, at)
    return found.start() if found else len(text)
