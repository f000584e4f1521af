"""Where in its line a gap is, and the lines around that."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CHARS = 4000
_IMPORTING = re.compile(r"^[ \t]*+from[ \t]++([\w.]++)[ \t]++import[ \t]*+\([^()]*+\Z", re.MULTILINE)


def holds_lines(head: str, suffix: str) -> bool:
    """Whether a gap holds whole lines: between what is before it in its line and the text behind it."""
    return not head and bool(suffix.strip()) and not suffix.startswith("\n")


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorLine:
    """Lines are without carriage returns."""

    text: str
    """Of the document."""
    cursor: int
    above: str
    """The nearest line before that is not blank; empty where there is none, as of `below`."""
    head: str
    """Of its line, what stands before it."""
    tail: str
    below: str
    is_line: bool
    """Whether it holds whole lines, with their indent and the last one's line break."""

    @classmethod
    def of(cls, text: str, cursor: int) -> CursorLine:
        above, _, head = text[max(cursor - _CHARS, 0) : cursor].replace("\r", "").rpartition("\n")
        suffix = text[cursor : cursor + _CHARS].replace("\r", "")
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
        """The module whose names are listed in the Python import that the gap is in; empty where it is in none."""
        found = _IMPORTING.search(self.text, max(self.cursor - _CHARS, 0), self.cursor)
        return found[1] if found else ""

    def line(self, line: str, indent: str) -> str:
        """`rest`, with the indent and the line break that the gap holds."""
        rest = self.rest(line)
        if self.is_line and rest:
            return f"{indent}{rest}\n"
        return rest if self.head or not rest else indent + rest

    def rest(self, line: str) -> str:
        """What is missing of the gap's line where it is `line`, without its indent; empty where it is another one."""
        typed, behind = self.head.strip(), self.tail.strip()
        if not line.startswith(typed) or not line.endswith(behind) or len(typed) + len(behind) >= len(line):
            return ""
        made = line[len(typed) : len(line) - len(behind)]
        return made.lstrip() if typed and self.head[-1:].isspace() else made
