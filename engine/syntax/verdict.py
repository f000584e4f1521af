"""A validator's verdict on a fill, and how it finds out what the text around a gap needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.common.wire import Wire
from engine.syntax.brackets import Brackets
from engine.syntax.continuations import Continuation
from engine.syntax.problems import Problem

_WORD_EDGE = re.compile(r"(?<=\W)(?=\w)|(?=\W)")
_GLUED = re.compile(r"\w\w")
"""The end of a fill and a word after it that would join: `for` is no name because `forx` is one."""


class OutOfTime(Exception):
    """The budget ran out; never leaves the package."""


class Verdict(Wire, frozen=True, kw_only=True):
    problems: tuple[Problem, ...]
    """Problems that it adds, the most certain first; empty: the fill may be offered."""
    whole: bool
    """False where the code around the gap is as broken or unfinished as it was without the fill: `f(▮` and `a`."""

    @property
    def is_clean(self) -> bool:
        return not self.problems


WHOLE = Verdict(problems=(), whole=True)
AS_BEFORE = Verdict(problems=(), whole=False)


def refusal(fill: str, problems: Sequence[Problem]) -> Verdict:
    """The verdict for these problems, shortest first. Those that span the whole fill, and those that show outside of
    it, count only if there is nothing else."""
    size = len(fill)
    inner = [problem for problem in problems if 0 < problem.end - problem.start < size or 0 < problem.start < size]
    chosen = {(problem.start, problem.end): problem for problem in reversed(inner or problems)}
    ordered = sorted(chosen.values(), key=lambda problem: (problem.end - problem.start, problem.start))
    return Verdict(problems=tuple(ordered), whole=False)


def tails(fill: str, continuation: Continuation, brackets: Brackets) -> Iterator[str]:
    """Texts that may be missing after a fill because they were missing before: the ends of the continuation's text,
    without brackets that the fill itself closes."""
    closers, tail = brackets.still_open(fill), continuation.tail
    edges = [edge.start() for edge in _WORD_EDGE.finditer(tail)]
    for start in dict.fromkeys([0, *edges, len(tail)]):
        finish = replace(continuation, tail=tail[start:], closers=closers).finish
        if not _GLUED.fullmatch(fill[-1:] + finish[:1]):
            yield finish


def unpaired_brackets(fill: str, brackets: Brackets) -> list[Problem]:
    """The brackets of a fill that nothing pairs."""
    excess = brackets.excess(fill)
    places = [*brackets.left_open(fill), *([] if excess is None else [excess])]
    return [Problem(start=at, end=at + 1, what=f"unpaired {fill[at]}") for at in places]


def unended_strings(fill: str, brackets: Brackets) -> list[Problem]:
    """The quotes of a fill that begin a string which its line does not end."""
    return [Problem(start=at, end=at + 1, what="string without an end") for at in brackets.cut_off(fill)]
