"""Where a gap ends that is written from left to right.

A small model does not stop by itself: it repeats what follows the cursor, and the gap ends where this begins. If it
never repeats it, the first statement is the answer. Lines are compared, not tokens, which are cut differently.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

from engine.common.request import FillRequest
from engine.common.sequences import overlaps
from engine.syntax.brackets import indentation
from engine.syntax.overlap import CLOSES

FURTHER = 1
"""Lines that may follow the first statement before the text goes on with what follows the cursor. Of 48 development
holes 0 to 6 fill as many with their very text; each line more costs passes where it never comes there."""
_TOLD = 4
"""Lines after the cursor of which the first may be told: how it is cut into tokens depends on blank ones after it."""
_TELLING = 8
"""Characters other than white space that identify a line before it is complete."""
_COMMENTS = ("#", "//")
_BRANCHES = re.compile(r"(else|elif|except|finally|catch)\b")
_WORD = re.compile(r"\w.*")
_QUOTES = ('"""', "'''", "`")
_OPENERS, _CLOSERS = "([{", ")]}"


class FoundEnd(NamedTuple):
    """Offsets in a text."""

    end: int | None = None
    """Where the gap ends; None: it does not end yet."""
    further: int | None = None
    """Where the text goes on with a further line after its first statement; None: it does not, it ends, or no line
    follows the cursor."""


class Ends:
    """Finds the end of one request's gap. Texts are what the model said, without `Prompt.head`."""

    def __init__(self, request: FillRequest) -> None:
        before, suffix = request.prefix, request.suffix
        self._line = before[before.rfind("\n") + 1 :]
        """The cursor's line before the cursor."""
        self._rest = suffix.partition("\n")[0]
        """The cursor's line after the cursor."""
        self._one_line = request.single_line
        self._in_line = request.single_line or bool(self._rest.strip() and self._line.strip())
        lines = suffix.split("\n")
        self._blank = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
        """Number of blank lines from the cursor on."""
        self._next = lines[self._blank] if self._blank < len(lines) else ""
        """The first line after the cursor that is not blank."""
        self.next_lines = "" if self._in_line else "\n".join(lines[self._blank :][:_TOLD])
        """The lines after the cursor, from the first that is not blank; empty where the gap ends within a line."""

    @property
    def next_is_statement(self) -> bool:
        """Whether the first line after the cursor that is not blank begins a statement of its own, instead of ending
        or parting the block."""
        line = self._next.strip().lstrip(_CLOSERS + " ")
        word = _WORD.search(line)
        # What closes or parts a block may come after any statement of it.
        return word is not None and not (CLOSES.match(word[0]) or _BRANCHES.match(line))

    @property
    def goes_on(self) -> bool:
        """Whether something follows the cursor in its line."""
        return bool(self._rest.strip())

    def cut(self, said: str) -> int:
        """The number of characters of a text that belong to the gap, once nothing follows the text."""
        end = self.found(said).end
        end = self.found(said, whole=True).end if end is None else end
        return len(said) if end is None else end

    def met(self, said: str) -> bool:
        """Whether a text runs into what follows the cursor."""
        wanted = self._rest.strip() if self._in_line and self._rest.strip() else self._next.strip()
        rest = said[self.cut(said) :].strip()
        return bool(rest and wanted) and (rest.startswith(wanted) or wanted.startswith(rest))

    def adds_nothing(self, said: str) -> bool:
        """Whether a text is empty, or only the line that follows the cursor."""
        return not said.strip() or (not self._in_line and said.strip() == self._next.strip())

    def settled(self, said: str) -> int:
        """The number of characters of a text that belong to the gap, whatever comes next."""
        if "\n" in said.strip("\n"):
            return 0
        return min(len(said) - next(overlaps(said, self._rest.strip()), 0), self.cut(said))

    def found(self, said: str, *, whole: bool = False) -> FoundEnd:
        """Where the gap ends in a text. `whole`: the last line is complete."""
        lines = said.split("\n")
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        if self._in_line:
            return FoundEnd(self._found_in_line(lines, starts, whole=whole))
        return self._found_between(lines, starts, whole=whole)

    def _found_in_line(self, lines: list[str], starts: list[int], *, whole: bool) -> int | None:
        """The end if text stands on both sides of the cursor, or if one line is requested."""
        rest = self._rest.strip()
        for at, line in enumerate(lines if whole else lines[:-1]):
            said = line.rstrip()
            if rest and said.endswith(rest):
                return starts[at] + len(said) - len(rest)
            goes_on = _is_open("\n".join(lines[: at + 1])) or (rest and said.endswith((",", "\\")))
            if self._one_line or not goes_on:
                return starts[at] + len(line)
        return None

    def _found_between(self, lines: list[str], starts: list[int], *, whole: bool) -> FoundEnd:
        """The end if the cursor is at the end of its line, or at its beginning."""
        first = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
        indent = indentation(self._line + lines[first]) if first < len(lines) else 0
        statement, further, then = None, 0, None
        for at in range(first + 1, len(lines)):
            line, is_begun = lines[at].strip(), at == len(lines) - 1 and not whole
            if not line:
                continue
            if self._follows(line, begun=is_begun):
                return FoundEnd(self._before(lines, starts, at))
            if indentation(lines[at]) == indent and _BRANCHES.match(line):
                # The statement before it goes on.
                statement, further, then = None, 0, None
                continue
            if statement is None and self._stands_alone(lines[:at], indent):
                statement, then = self._before(lines, starts, at), starts[at]
            if statement is not None and indentation(lines[at]) < indent and line[0] not in _CLOSERS:
                is_deeper = self._next and indentation(self._next) >= indent
                return FoundEnd(statement if is_deeper else self._before(lines, starts, at))
            if statement is not None and self._next and not is_begun:
                further += 1
                if further > FURTHER:
                    return FoundEnd(statement)
        if not whole:
            return FoundEnd(further=then if self._next else None)
        return FoundEnd(statement if further else self._before(lines, starts, len(lines)))

    def _follows(self, line: str, *, begun: bool) -> bool:
        wanted = self._next.strip()
        return bool(wanted) and (line == wanted or (begun and is_told(line) and wanted.startswith(line)))

    def _stands_alone(self, lines: list[str], indent: int) -> bool:
        """Whether lines with this indentation are complete without further lines of their own."""
        said = "\n".join(lines).rstrip()
        if said[said.rfind("\n") + 1 :].lstrip().startswith(_COMMENTS):
            return False
        if _is_open(self._line + said) or said.endswith("\\") or any(said.count(quote) % 2 for quote in _QUOTES):
            return False
        return not said.endswith((":", "{")) or indentation(self._next) > indent

    def _before(self, lines: list[str], starts: list[int], at: int) -> int:
        """Where the text before a line ends. Its last line break belongs to the gap if that line is the one after the
        cursor."""
        end = at
        while end and not lines[end - 1].strip():
            end -= 1
        if not self._rest.strip():
            kept = 0 if self._line or at == len(lines) else max(0, at - end + 1 - self._blank)
            return starts[end + kept] - 1
        # The line's own white space is the gap's as far as it stands before the cursor.
        indent = indentation(lines[at]) if at < len(lines) else 0
        return min(starts[at], starts[-1] - 1) + max(0, indent - indentation(self._rest))


def is_told(line: str) -> bool:
    """Whether the beginning of a line tells it from others."""
    return "\n" in line or len("".join(line.split())) >= _TELLING


def _is_open(text: str) -> bool:
    """Whether a bracket is open at its end; strings are not told apart."""
    return sum(map(text.count, _OPENERS)) > sum(map(text.count, _CLOSERS))
