"""Checks a fill with Python's own compiler, which is stricter than any grammar but reports only the first problem. So
the smallest piece of code around the gap that compiles without the fill is compiled with it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from engine.common.line_ends import LINE_END
from engine.syntax.brackets import Brackets, indentation, pair
from engine.syntax.budget import Budget
from engine.syntax.continuations import Continuation, continuations
from engine.syntax.problems import Problem
from engine.syntax.verdict import AS_BEFORE, WHOLE, OutOfTime, Verdict, refusal, tails, unpaired_brackets

LARGEST = 150_000
"""Characters; a compilation can't be interrupted, so longer texts are not compiled."""
_NOT_SYNTAX = "no binding for nonlocal"
"""A message about text that parses; its cause may be outside of the piece that is compiled."""
_LACKS = ("expected an indented block", "expected 'except' or 'finally' block")
_ENDS = re.compile(r"invalid syntax$|expected '[^']+'$")
"""Messages that say that no token fits here."""
_CONTINUES = re.compile(r"[)\]}#]|(?:else|elif|except|finally|case)\b")
_DEFINITION = re.compile(r"(?:async[ \t]+)?(?:def|class)\b")
_NEXT_LINE = re.compile(r"\s*[^\n]*")
_SEARCHED = 80
"""Continuations that are tried in one piece of code."""
_KEPT = 6
_CHARACTERS_PER_MS = 2000
"""Speed of the compiler at worst; ordinary code takes half the time."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A text's first problem, at a character offset."""

    message: str
    offset: int


def diagnose(text: str, language: str = "python") -> Diagnostic | None:
    """The compiler's complaint about a text; None if it has none. Never raises. `language`: a `Grammar.name` of
    Python."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if language == "ipython" else 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<fill>", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        if error.msg.startswith(_NOT_SYNTAX):
            return None
        return Diagnostic(error.msg, _offset(text, error.lineno or 1, error.offset or 1))
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        return Diagnostic(str(error) or type(error).__name__, len(text))
    return None


class CompilerValidator:
    def __init__(self, before: str, after: str, old: str, brackets: Brackets) -> None:
        self._before, self._after, self._old, self._brackets = before, after, old, brackets
        self._chunks = _chunks(before, after, len(before) - brackets.depth, brackets.language)
        self._needs: dict[_Chunk, list[Continuation]] = {}
        self._candidates: list[Continuation] | None = None
        self._empty: dict[_Chunk, Diagnostic | None] = {}
        """Problems of pieces of code without a fill."""

    def verdict(self, fill: str, budget: Budget) -> Verdict | None:
        """The problems that a fill adds; None where the code around the gap is too broken to tell. Raises OutOfTime."""
        if not self._chunks:
            return None
        *smaller, text = self._chunks
        error = text.diagnose(fill, budget)
        if error is None:
            return WHOLE
        # It reads from the left: what it can't go on with is no fault of what stands before or after.
        if _ENDS.match(error.message) and 0 <= error.offset - len(text.before) < len(fill):
            return self._refusal(text, fill, error)
        if needs := self._needed(text, budget):
            return self._blamed(text, fill, needs, error, budget)
        for chunk in reversed(smaller):
            needs = self._needed(chunk, budget)
            if needs and self._stays_inside(fill):
                nearer = chunk.diagnose(fill, budget)
                if nearer is None:
                    return AS_BEFORE if self._is_nearby(error, fill) else WHOLE
                return self._blamed(chunk, fill, needs, nearer, budget)
        return None

    def _stays_inside(self, fill: str) -> bool:
        """Whether the pieces around the gap keep their limits: the fill opens nothing that ends after them, and does
        not continue a statement that begins before them."""
        pairing = pair(self._brackets.head + fill, "python")
        return not (pairing.pending or pairing.unclosed or _CONTINUES.match(fill.lstrip()))

    def _blamed(
        self, chunk: _Chunk, fill: str, needs: Sequence[Continuation], error: Diagnostic, budget: Budget
    ) -> Verdict:
        """The verdict if a piece compiles with a continuation, but not with the fill."""
        if self._lacking_before(chunk, error, budget) or self._unfinished_before(chunk, fill, needs, budget):
            return AS_BEFORE
        return self._refusal(chunk, fill, error)

    def _refusal(self, chunk: _Chunk, fill: str, error: Diagnostic) -> Verdict:
        at = min(max(0, error.offset - len(chunk.before)), len(fill))
        problem = Problem(start=at, end=min(at + 1, len(fill)), what=error.message)
        return refusal(fill, [problem, *unpaired_brackets(fill, self._brackets)])

    def _is_nearby(self, error: Diagnostic, fill: str) -> bool:
        """Whether the text as a whole is broken in the definition around the gap."""
        text, definition = self._chunks[-1], (self._chunks[:-1] or self._chunks)[:2][-1]
        before, after = len(text.before) - error.offset, error.offset - len(text.before) - len(fill)
        # The next line is around the gap as well: what is missing may be the head of its block.
        line = _NEXT_LINE.match(text.after)
        return before <= len(definition.before) and after <= max(len(definition.after), line.end() if line else 0)

    def _lacking_before(self, chunk: _Chunk, error: Diagnostic, budget: Budget) -> bool:
        """Whether the same block is empty without the fill."""
        if not error.message.startswith(_LACKS):
            return False
        if chunk not in self._empty:
            self._empty[chunk] = chunk.diagnose("", budget)
        empty = self._empty[chunk]
        return empty is not None and empty.message == error.message

    def _unfinished_before(self, chunk: _Chunk, fill: str, needs: Sequence[Continuation], budget: Budget) -> bool:
        """Whether the only problem is one that exists without the fill."""
        return needs[0].finishes and any(
            chunk.diagnose(fill + tail, budget) is None for need in needs for tail in tails(fill, need, self._brackets)
        )

    def _needed(self, chunk: _Chunk, budget: Budget) -> list[Continuation]:
        """Continuations with which a piece of code compiles; those that add least come first."""
        if chunk not in self._needs:
            if any(chunk.diagnose(reference, budget) is None for reference in {"", self._old}):
                self._needs[chunk] = [Continuation()]
            else:
                self._needs[chunk] = list(chunk.compiling(self._searched(budget), budget))
        return self._needs[chunk]

    def _searched(self, budget: Budget) -> list[Continuation]:
        """Continuations for the smallest piece of code that has any."""
        if self._candidates is None:
            everything = list(islice(continuations(self._before, self._after, "python"), _SEARCHED))
            found = (list(islice(chunk.compiling(everything, budget), _KEPT)) for chunk in self._chunks[:2])
            self._candidates = next((each for each in found if each), [])
        return self._candidates


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A piece of code around a gap that compiles by itself if the whole does."""

    before: str
    after: str
    language: str

    def diagnose(self, fill: str, budget: Budget, end: str = "") -> Diagnostic | None:
        """The problem of the piece with a text in the gap. Raises OutOfTime where compiling would take too long."""
        text = self.before + fill + self.after + end
        if budget.left_ms() < len(text) / _CHARACTERS_PER_MS:
            raise OutOfTime
        return diagnose(text, self.language)

    def compiling(self, candidates: Sequence[Continuation], budget: Budget) -> Iterator[Continuation]:
        return (each for each in candidates if self.diagnose(each.text, budget, each.end) is None)


def _chunks(before: str, after: str, outside: int, language: str) -> list[_Chunk]:
    """Pieces to look at a gap in, smallest first: the statement, the definition around it, the top-level statement, and
    the whole text if it is not too large. At the offset `outside` of `before` no bracket or string is open."""
    starts = list(_starts(before, outside))
    definitions = [start for start in starts if start.defines]
    spans = {
        (start.at, _end(after, start.depth)): start.wrapper for start in (*starts[:1], *definitions[:1], *starts[-1:])
    }
    spans[0, len(after)] = ""
    sizes = {span: len(before) - span[0] + span[1] for span in spans}
    return [
        _Chunk(spans[span] + before[span[0] :], after[: span[1]], language)
        for span in sorted(spans, key=lambda span: sizes[span])
        if sizes[span] <= LARGEST
    ]


@dataclass(frozen=True, slots=True)
class _Start:
    """The first line of a piece: where it begins, its indentation, whether it begins a definition."""

    at: int
    depth: int
    defines: bool

    @property
    def wrapper(self) -> str:
        """Code around the line that makes it legal at its place."""
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
        if line and depth < shallowest and not _CONTINUES.match(line):
            shallowest = depth
            yield _Start(_with_decorators(before, start, depth), depth, bool(_DEFINITION.match(line)))
    if shallowest:
        yield _Start(0, 0, False)


def _with_decorators(before: str, start: int, depth: int) -> int:
    while start > 0:
        above = before.rfind("\n", 0, start - 1) + 1
        line = before[above:start]
        if not (line.lstrip().startswith("@") and indentation(line) == depth):
            return start
        start = above
    return start


def _end(after: str, depth: int) -> int:
    """Where the first line begins that is indented no deeper than `depth`."""
    at = after.find("\n") + 1
    while at > 0:
        stop = after.find("\n", at) + 1 or len(after)
        line = after[at:stop]
        if line.strip() and indentation(line) <= depth and not _CONTINUES.match(line.lstrip()):
            return at
        at = stop if stop < len(after) else 0
    return len(after)


def _offset(text: str, line: int, column: int) -> int:
    """The offset of a place that the compiler names by line and column from 1; it ends lines like an editor."""
    starts = (0, *(end.end() for end in islice(LINE_END.finditer(text), line - 1)))
    return min(len(text), starts[line - 1] + max(0, column - 1)) if line <= len(starts) else len(text)
