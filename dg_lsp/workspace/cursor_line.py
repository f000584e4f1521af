"""The line that a gap is in, and the lines around it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CHARS = 4000
_IMPORTING = re.compile(r"^[ \t]*+from[ \t]++([\w.]++)[ \t]++import[ \t]*+\([^()]*+\Z", re.MULTILINE)


def holds_lines(head: str, suffix: str) -> bool:
    """Whether a gap between the text before it on its line and `suffix` holds whole lines."""
    return not head and bool(suffix.strip()) and not suffix.startswith("\n")


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorLine:
    """The line of a gap, with its neighbours."""

    text: str
    """The document's text, with line feeds."""
    cursor: int
    above: str
    """The nearest line above that is not blank, empty where there is none; `below` likewise."""
    head: str
    """The text before the gap on its line."""
    tail: str
    below: str
    is_line: bool
    """Whether the gap holds whole lines, with their indent and the last line break."""

    @classmethod
    def of(cls, text: str, cursor: int) -> CursorLine:
        above, _, head = text[max(cursor - _CHARS, 0) : cursor].rpartition("\n")
        suffix = text[cursor : cursor + _CHARS]
        is_line = holds_lines(head, suffix)
        tail, _, below = ("", "", suffix) if is_line else suffix.partition("\n")
        blank = len(below) - len(below.lstrip())
        return cls(
            text=text,
            cursor=cursor,
            above=above.rstrip().rpartition("\n")[2],
            head=head,
            tail=tail,
            below=below[below.rfind("\n", 0, blank) + 1 :].partition("\n")[0] if blank < len(below) else "",
            is_line=is_line,
        )

    @property
    def importing(self) -> str:
        """The module of the Python import whose list of names the gap is in; empty where it is in none."""
        found = _IMPORTING.search(self.text, max(self.cursor - _CHARS, 0), self.cursor)
        return found[1] if found else ""

    def line(self, line: str, indent: str) -> str:
        """`rest`, with the indent and line break that the gap holds."""
        rest = self.rest(line)
        if self.is_line and rest:
            return f"{indent}{rest}\n"
        return rest if self.head or not rest else indent + rest

    def rest(self, line: str) -> str:
        """What the gap's line lacks to be `line`, without indent; empty where it can't become that."""
        typed, after = self.head.strip(), self.tail.strip()
        if not line.startswith(typed) or not line.endswith(after) or len(typed) + len(after) >= len(line):
            return ""
        made = line[len(typed) : len(line) - len(after)]
        return made.lstrip() if typed and self.head[-1:].isspace() else made
