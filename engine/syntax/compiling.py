"""Python's own compiler as a judge: stricter than any grammar, but it sees only the first problem of a text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

LARGEST = 150_000
"""Characters; a compilation can't be interrupted, so longer texts are not judged."""
_NOT_SYNTAX = "no binding for nonlocal"
"""A complaint about text that parses; it may be due to what a focus leaves out."""
CONTINUES = re.compile(r"[)\]}#]|(?:else|elif|except|finally|case)\b")
_DEFINITION = re.compile(r"(?:async[ \t]+)?(?:def|class)\b")


@dataclass(frozen=True, slots=True)
class Complaint:
    """The first problem of a text, at a character offset."""

    message: str
    offset: int


def complaint(text: str) -> Complaint | None:
    """What the compiler says against a text; None if nothing. Never raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<fill>", "exec", dont_inherit=True)
    except SyntaxError as error:
        if error.msg.startswith(_NOT_SYNTAX):
            return None
        return Complaint(error.msg, _offset(text, error.lineno or 1, error.offset or 1))
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        return Complaint(str(error) or type(error).__name__, len(text))
    return None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of code around a gap that compiles by itself if the whole does."""

    before: str
    after: str

    def text(self, fill: str) -> str:
        """The piece with something in the gap."""
        return self.before + fill + self.after


def chunks(before: str, after: str, outside: int) -> list[Chunk]:
    """Pieces to judge a gap in, smallest first: the statement, the definition around it, the top-level statement, and
    the whole text if it is not too large. At the offset `outside` of `before` no bracket or string is open."""
    starts = list(_starts(before, outside))
    definitions = [start for start in starts if start.defines]
    spans = {
        (start.at, _end(after, start.depth)): start.wrapper for start in (*starts[:1], *definitions[:1], *starts[-1:])
    }
    spans[0, len(after)] = ""
    sizes = {span: len(before) - span[0] + span[1] for span in spans}
    return [
        Chunk(spans[span] + before[span[0] :], after[: span[1]])
        for span in sorted(spans, key=lambda span: sizes[span])
        if sizes[span] <= LARGEST
    ]


@dataclass(frozen=True, slots=True)
class _Start:
    """The first line of a chunk: where it begins, how deep it is indented, whether it begins a definition."""

    at: int
    depth: int
    defines: bool

    @property
    def wrapper(self) -> str:
        """What makes a place where such a line may stand."""
        if self.depth == 0:
            return ""
        return "if 1:\n" if self.defines or self.depth == 1 else "async def _():\n while 1:\n"


def _starts(before: str, outside: int) -> Iterator[_Start]:
    """The first lines of the statements around the gap, innermost first."""
    last = before[before.rfind("\n") + 1 :]
    shallowest = len(last) + 1 if last and not last.strip() else 10_000
    start = (before.find("\n", outside) if "\n" in before[outside:] else len(before)) + 1
    while start > 0 and shallowest > 0:
        end = start - 1
        start = before.rfind("\n", 0, end) + 1
        line = before[start:end].lstrip()
        depth = end - start - len(line)
        if line and depth < shallowest and not CONTINUES.match(line):
            shallowest = depth
            yield _Start(_with_decorators(before, start, depth), depth, bool(_DEFINITION.match(line)))
    if shallowest:
        yield _Start(0, 0, False)


def _with_decorators(before: str, start: int, depth: int) -> int:
    while start > 0:
        above = before.rfind("\n", 0, start - 1) + 1
        line = before[above:start]
        if not (line.lstrip().startswith("@") and _depth(line) == depth):
            return start
        start = above
    return start


def _end(after: str, depth: int) -> int:
    """Where the first line begins that is not deeper than `depth`."""
    at = after.find("\n") + 1
    while at > 0:
        stop = after.find("\n", at) + 1 or len(after)
        line = after[at:stop]
        if line.strip() and _depth(line) <= depth and not CONTINUES.match(line.lstrip()):
            return at
        at = stop if stop < len(after) else 0
    return len(after)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _offset(text: str, line: int, column: int) -> int:
    """The character at a place that the compiler names, both counted from 1; it ends lines as an editor does."""
    at = 0
    for _ in range(line - 1):
        found = re.compile(r"\r\n|\r|\n").search(text, at)
        if found is None:
            return len(text)
        at = found.end()
    return min(len(text), at + max(0, column - 1))
