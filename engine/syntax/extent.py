"""What a gap lies in, and how far a fill may go: to the end of that, not beyond."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.syntax.brackets import Bracket, Brackets, open_at, statement_start
from engine.syntax.lexing import Lexeme, lexemes

ExtentKind = Literal["string", "comment", "arguments", "brackets", "block", "rest_of_line", "open"]

_AFTER_A_CALLEE = re.compile(r"[\w)\]>!?]\s*\Z")
_NOT_A_CALLEE = re.compile(
    r"\b(?:if|elif|while|for|foreach|switch|match|catch|with|return|and|or|not|in|await|print|function|fn|func|def)\s*\Z"
    r"|\b(?:def|function|func|fn|fun|class|sub)\s+[\w.:]+\s*\Z"
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
_CONTINUES = re.compile(r"(?:else|elif|except|finally|catch|rescue|ensure|elsif|elseif|when|and|or)\b|[.)\]}|&?:+-]")
_ENDS = re.compile(r"(?:end|fi|done|esac|until)\b")


@dataclass(frozen=True, slots=True)
class Extent:
    """What a gap lies in.

    "brackets" are those of anything but a call; a "block" is an empty one; "rest_of_line" is where code stands before
    the gap in its line; "open" is a place for any number of statements.
    """

    kind: ExtentKind
    closer: str = ""
    """What ends it, where one piece of text does."""
    closed: bool = False
    """Whether the text after the gap has the closer."""


def extent(brackets: Brackets) -> Extent:
    """What the gap with these brackets around it lies in."""
    pending, unclosed = brackets.at_gap.pending, brackets.at_gap.unclosed
    if pending:
        kind = "comment" if pending.kind == "comment" else "string"
        return Extent(kind, pending.closer, ends_behind(pending, brackets))
    if unclosed:
        innermost = unclosed[-1]
        closed = innermost.start - len(brackets.before) not in {bracket.start for bracket in brackets.unclosed}
        if innermost.closer != "}":
            return Extent(_bracket_kind(brackets.before, innermost), innermost.closer, closed)
        if not brackets.before[innermost.start + 1 :].strip() and brackets.after.lstrip()[:1] in ("}", ""):
            return Extent("block", "}", closed)
    if _last_line(brackets.before).strip():
        return Extent("rest_of_line")
    return Extent("block") if _in_empty_block(brackets.before, brackets.after) else Extent("open")


def cut_to_extent(brackets: Brackets, fill: str) -> str:
    """The fill up to the end of what the gap lies in.

    A string or bracket that the text after the gap does not end is a part of a statement that the fill may end.
    """
    place = extent(brackets)
    if place.kind in ("string", "comment") and place.closed:
        return fill[: _end_of_pending(brackets, fill, place)]
    fill = fill[: brackets.excess(fill)]
    if place.kind == "block" and not place.closer:
        return fill[: _end_of_block(brackets, fill)]
    if place.kind in ("open", "block") or place.closed:
        return fill
    return fill[: _end_of_statement(brackets, fill)]


def ends_behind(pending: Lexeme, brackets: Brackets) -> bool:
    """Whether the text after the gap ends the string or comment around the gap: by the first closer, unless that
    begins or ends another one."""
    after, closer = brackets.after, pending.closer
    if closer == "*/":
        return 0 <= after.find(closer) < (after.find("/*") if "/*" in after else len(after))
    if len(closer) == 3:
        return after.count(closer) % 2 == 1
    if "\n" not in brackets.head:
        after = after.splitlines()[0] if after else ""
    return closer == "\n" or _pending_end(brackets.head, after, brackets.language) is not None


def _bracket_kind(before: str, bracket: Bracket) -> ExtentKind:
    callee = before[: bracket.start].rpartition("\n")[2]
    call = bracket.closer == ")" and _AFTER_A_CALLEE.search(callee) and not _NOT_A_CALLEE.search(callee)
    return "arguments" if call else "brackets"


def _in_empty_block(before: str, after: str) -> bool:
    """Whether the line above opens a block by its colon and nothing below is in it."""
    above = before.rstrip()
    if not above.endswith(":"):
        return False
    header = _header(above)
    below = next((line for line in after.splitlines()[1:] if line.strip()), "")
    return not below or _indentation(below) <= header


def _end_of_pending(brackets: Brackets, fill: str, place: Extent) -> int:
    """Where a string or comment ends that the text after the gap goes on with."""
    if place.closer == "\n" or (len(place.closer) == 1 and "\n" not in brackets.head):
        fill = fill.splitlines()[0] if fill else ""
    end = _pending_end(brackets.head, fill, brackets.language)
    return len(fill) if end is None or place.closer == "\n" else max(0, end - len(place.closer))


def _pending_end(head: str, text: str, language: str) -> int | None:
    """Where in `text` the string or comment ends that begins with `head`."""
    first: Lexeme | None = next(lexemes(head + text, language), None)
    return first.end - len(head) if first and first.ended else None


def _end_of_block(brackets: Brackets, fill: str) -> int:
    """Before the first line that is not deeper than the line that opens the block."""
    header = _header(brackets.before.rstrip())
    for start, line in _lines_after_first(brackets, fill):
        if _indentation(line) <= header:
            return len(fill[:start].rstrip())
    return len(fill)


def _end_of_statement(brackets: Brackets, fill: str) -> int:
    """The end of the statement that the gap's line begins: its line, with what is deeper below it."""
    if not fill.split("\n", 1)[0].strip():
        return len(fill)
    base = _indentation(_last_line(brackets.before))
    for start, line in _lines_after_first(brackets, fill):
        if _indentation(line) <= base and not _CONTINUES.match(line.lstrip()):
            ends_here = _ENDS.match(line.lstrip()) and not _ENDS.match(brackets.after.lstrip())
            return start + len(line.rstrip()) if ends_here else len(fill[:start].rstrip())
    return len(fill)


def _lines_after_first(brackets: Brackets, fill: str) -> Iterator[tuple[int, str]]:
    """The lines of a fill that are not blank and in no bracket or string, but for the first."""
    around = tuple(Bracket(bracket.start, bracket.closer) for bracket in brackets.unclosed[-1:])
    lines = [match for match in _LINE.finditer(fill) if match.start() > 0 and not match.group().isspace()]
    places = [len(brackets.head) + match.start() for match in lines]
    for match, inside in zip(lines, open_at(brackets.head + fill, brackets.language, places, around), strict=True):
        if match.group() and not inside.bracket and not inside.string:
            yield match.start(), match.group()


def _header(above: str) -> int:
    """How deep the statement is indented that ends a text."""
    start = statement_start(above, "python")
    return _indentation(above[start:]) if above[start:].strip() else 0


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text[-1:] not in ("", "\n", "\r") else ""


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
