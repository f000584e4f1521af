"""Places where something is still to be written: an empty body, a placeholder, an empty argument list."""

from __future__ import annotations

import re

from engine.core.findings import Blank
from engine.syntax.brackets import Brackets, brackets_near, statement_start
from engine.syntax.extent import extent

_PLACEHOLDER = re.compile(r"[ \t]*(?P<code>(?:pass|\.\.\.|TODO|todo!\(\)|unimplemented!\(\));?)[ \t]*\Z")
_TODO = re.compile(r"[ \t]*(?:#|//|--|;)+[ \t]*(?:TODO|FIXME)\b")
_LINE_END = re.compile(r"[\r\n]")
_INDENT = re.compile(r"[ \t]*")
_EMPTY_CALL = re.compile(r"\(([ \t]*)\)")
_CALL = re.compile(r"[\w)\]>!?]\s*\Z")
_BODY_FOLLOWS = re.compile(r"(?:[)>\w]|^)\s*\Z")
_DEFINES = re.compile(r"\b(?:def|function|func|fn|fun|class|sub|if|elif|while|for|foreach|switch|match|catch|with)\b")


def blank_at(text: str, cursor: int, language: str) -> Blank | None:
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


def _arguments(text: str, cursor: int) -> Blank | None:
    """Blank brackets of a call around the cursor, or the ones that open or close at it."""
    found = _EMPTY_CALL.search(text, max(0, text.rfind("(", 0, cursor + 1)))
    if found is None or not found.start() <= cursor <= found.end():
        return None
    line = text[_line_start(text, found.start()) : found.start()]
    if not _CALL.search(line) or _DEFINES.search(line.rpartition("=")[2]):
        return None
    return Blank(kind="arguments", start=found.start(1), end=found.end(1), single_line=True)


def _braces(text: str, cursor: int, around: Brackets) -> Blank | None:
    """Blank braces of a body around the cursor."""
    place = extent(around)
    if place.kind != "block" or place.closer != "}" or not place.closed:
        return None
    opener = around.at_gap.unclosed[-1].start + cursor - len(around.before)
    if not _BODY_FOLLOWS.search(text, _line_start(text, opener), opener):
        return None
    closer = text.index("}", cursor)
    indent = _indent(text, opener)
    break_ = _line_break(text)
    return Blank(
        kind="body",
        start=opener + 1,
        end=closer,
        before=f"{break_}{indent}{indent_unit(text, '  ')}",
        after=f"{break_}{indent}",
    )


def _placeholder(text: str, cursor: int) -> Blank | None:
    """A line that only says that something is to come; or the end of a header line that says so."""
    start = _line_start(text, cursor)
    line = text[start : _line_end(text, cursor)]
    header = re.match(r".*:(?=[ \t]*(?:pass|\.\.\.)[ \t]*\Z)", line)
    shift = header.end() if header else 0
    found = _PLACEHOLDER.match(line[shift:])
    if found is None:
        return None
    code = start + shift + found.start("code")
    if not header:
        return Blank(kind="placeholder", start=code, end=code + len(found["code"]))
    before = _line_break(text) + _indent(text, start) + indent_unit(text, "    ")
    return Blank(kind="placeholder", start=start + shift, end=code + len(found["code"]), before=before)


def _todo(text: str, cursor: int) -> Blank | None:
    """Below a comment that says so; the comment stays."""
    start, end = _line_start(text, cursor), _line_end(text, cursor)
    if not _TODO.match(text[start:end]):
        return None
    return Blank(kind="placeholder", start=end, end=end, before=_line_break(text) + _indent(text, start))


def _empty_block(text: str, cursor: int, language: str) -> Blank | None:
    """Below a header whose block is missing, at the header or on the blank line below it."""
    if language != "python":
        return None
    line = text[_line_start(text, cursor) : _line_end(text, cursor)]
    end = len(text[:cursor].rstrip()) if not line.strip() else _line_end(text, cursor)
    above = text[: len(text[:end].rstrip())]
    if not above.endswith(":"):
        return None
    before = _line_break(text) + _indent(text, _statement_start(above, language)) + indent_unit(text, "    ")
    if extent(brackets_near(above + before, text[end:] or "\n", language)).kind != "block":
        return None
    stop = _line_end(text, cursor) if not line.strip() else end
    return Blank(kind="body", start=len(above), end=stop, before=before)


def indent_unit(text: str, default: str) -> str:
    """By how much a text indents a block, as its first indented line says."""
    before = ""
    for line in text.splitlines():
        indent = _INDENT.match(line)
        if indent and line.strip():
            if indent.group() != before and indent.group().startswith(before):
                return indent.group()[len(before) :]
            before = indent.group()
    return default


def _statement_start(above: str, language: str) -> int:
    """Where the statement begins that a text ends with: it may span lines."""
    near = brackets_near(above, "", language).before
    return len(above) - len(near) + statement_start(near, language)


def _indent(text: str, at: int) -> str:
    """The indentation of the line that holds an offset."""
    found = _INDENT.match(text, _line_start(text, at))
    return found.group() if found else ""


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> int:
    found = _LINE_END.search(text, at)
    return found.start() if found else len(text)


def _line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
