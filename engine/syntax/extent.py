"""The extent of a gap, and the part of a fill within it: a fill neither goes beyond that nor repeats its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.syntax.brackets import Brackets, indentation, outside_of_all, statement_start
from engine.syntax.lexing import Lexeme, lexemes
from engine.syntax.overlap import line_end

ExtentKind = Literal["string", "comment", "brackets", "block", "rest_of_line", "open"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
_CONTINUES = re.compile(r"(?:else|elif|except|finally|catch|rescue|ensure|elsif|elseif|when|and|or)\b|[.)\]}|&?:+-]")
_ENDS = re.compile(r"(?:end|fi|done|esac|until)\b")


@dataclass(frozen=True, slots=True)
class Extent:
    """The place of a gap. "block": an empty block; "rest_of_line": code precedes the gap in its line; "open": any
    number of statements fits."""

    kind: ExtentKind
    closer: str = ""
    """The text that ends it, where that is one piece."""
    closed: bool = False
    """Whether the text after the gap has the closer."""


def extent(brackets: Brackets) -> Extent:
    """The extent of a gap with these brackets around it."""
    pending, unclosed = brackets.at_gap.pending, brackets.at_gap.unclosed
    if pending:
        kind = "comment" if pending.kind == "comment" else "string"
        return Extent(kind, pending.closer, _ends_after(pending, brackets))
    if unclosed:
        innermost = unclosed[-1]
        closed = innermost.start - len(brackets.before) not in {bracket.start for bracket in brackets.unclosed}
        if innermost.closer != "}":
            return Extent("brackets", innermost.closer, closed)
        if not brackets.before[innermost.start + 1 :].strip() and brackets.after.lstrip()[:1] in ("}", ""):
            return Extent("block", "}", closed)
    if _last_line(brackets.before).strip():
        return Extent("rest_of_line")
    return Extent("block") if _in_empty_block(brackets.before, brackets.after) else Extent("open")


def cut_to_extent(brackets: Brackets, fill: str) -> str:
    """A fill up to the end of the gap's extent. A string or bracket that the text after the gap does not end is part of
    a statement, which the fill may end."""
    place = extent(brackets)
    if place.kind in ("string", "comment") and place.closed:
        return fill[: _end_of_pending(brackets, fill, place)]
    fill = fill[: brackets.excess(fill)]
    if place.kind == "block" and not place.closer:
        return fill[: _end_of_block(brackets, fill)]
    if place.kind in ("open", "block") or place.closed:
        return fill
    return fill[: _end_of_statement(brackets, fill)]


def without_closers(brackets: Brackets, fill: str) -> str:
    """A fill without brackets and quotes that are closed after the gap, as editors close them."""
    fill = fill[: _repeated_quote(brackets, fill)]
    return fill[: _repeated_closers(brackets, fill)]


def _ends_after(pending: Lexeme, brackets: Brackets) -> bool:
    """Whether the text after the gap ends the string or comment around it: by its first closer, unless that belongs to
    another one."""
    after, closer = brackets.after, pending.closer
    if closer == "*/":
        return 0 <= after.find(closer) < (after.find("/*") if "/*" in after else len(after))
    if len(closer) == 3:
        return after.count(closer) % 2 == 1
    if "\n" not in brackets.head:
        after = after.splitlines()[0] if after else ""
    return closer == "\n" or _pending_end(brackets, after) is not None


def _in_empty_block(before: str, after: str) -> bool:
    """Whether the line above opens a block with a colon, and the block is empty."""
    above = before.rstrip()
    if not above.endswith(":"):
        return False
    header = _header(above)
    below = next((line for line in after.splitlines()[1:] if line.strip()), "")
    return not below or indentation(below) <= header


def _end_of_pending(brackets: Brackets, fill: str, place: Extent) -> int:
    """The end of the string or comment that begins before the gap and continues after it."""
    if place.closer == "\n" or (len(place.closer) == 1 and "\n" not in brackets.head):
        fill = fill.splitlines()[0] if fill else ""
    end = _pending_end(brackets, fill)
    return len(fill) if end is None or place.closer == "\n" else max(0, end - len(place.closer))


def _pending_end(brackets: Brackets, text: str) -> int | None:
    """The end, in `text`, of the string or comment that begins before the gap."""
    pending = _continued(brackets, text)
    return pending.end - len(brackets.head) if pending and pending.ended else None


def _continued(brackets: Brackets, text: str) -> Lexeme | None:
    """The string or comment that begins before the gap, if it goes on in `text`."""
    return next(lexemes(brackets.head + text, brackets.language, brackets.context), None)


def _end_of_block(brackets: Brackets, fill: str) -> int:
    """The end before the first line that is indented no deeper than the line that opens the block."""
    header = _header(brackets.before.rstrip())
    for start, line in _lines_after_first(brackets, fill):
        if indentation(line) <= header:
            return len(fill[:start].rstrip())
    return len(fill)


def _end_of_statement(brackets: Brackets, fill: str) -> int:
    """The end of the statement that the gap's line begins: the line, and deeper lines below it."""
    if not fill.split("\n", 1)[0].strip():
        return len(fill)
    base = indentation(_last_line(brackets.before))
    for start, line in _lines_after_first(brackets, fill):
        if indentation(line) <= base and not _CONTINUES.match(line.lstrip()):
            ends_here = _ENDS.match(line.lstrip()) and not _ENDS.match(brackets.after.lstrip())
            end = start + len(line.rstrip()) if ends_here else len(fill[:start].rstrip())
            return end if fill[end:].strip() else len(fill)
    return len(fill)


def _lines_after_first(brackets: Brackets, fill: str) -> Iterator[tuple[int, str]]:
    """The lines of a fill after the first one that are not blank and in no bracket or string."""
    size = len(brackets.head)
    lines = {size + match.start(): match.group() for match in _LINE.finditer(fill) if match.start() and match.group()}
    places = [place for place, line in lines.items() if not line.isspace()]
    for place in outside_of_all(
        brackets.head + fill, brackets.language, places, brackets.unclosed[-1:], brackets.context
    ):
        yield place - size, lines[place]


def _repeated_quote(brackets: Brackets, fill: str) -> int:
    """Where a fill ends the string around the gap although the text after the gap does."""
    pending = brackets.at_gap.pending
    if not pending or not pending.closer.strip() or not _ends_after(pending, brackets):
        return len(fill)
    inside = _continued(brackets, fill)
    if not inside or not inside.ended:
        return len(fill)
    end = inside.end - len(brackets.head) - len(pending.closer)
    again = fill[end:]
    return end if brackets.after.startswith(again) or not _balanced(brackets, fill) else len(fill)


def _balanced(brackets: Brackets, fill: str) -> bool:
    """Whether every string ends in the line in which the gap's line ends."""
    line = fill + brackets.after[: line_end(brackets.after)]
    found = lexemes(brackets.head + line, brackets.language, brackets.context)
    return all(lexeme.ended or lexeme.kind == "comment" for lexeme in found)


def _repeated_closers(brackets: Brackets, fill: str) -> int:
    excess = brackets.excess(fill)
    if excess is None:
        return len(fill)
    head = fill[:excess]
    blank = len(brackets.after) - len(brackets.after.lstrip())
    return len(head.rstrip()) if blank and head != head.rstrip() else excess


def _header(above: str) -> int:
    """The indentation of the statement at the end of a text."""
    start = statement_start(above, "python")
    return indentation(above[start:]) if above[start:].strip() else 0


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text[-1:] not in ("", "\n", "\r") else ""
