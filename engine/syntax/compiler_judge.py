"""Judge Python fills by the compiler, in the smallest piece of code around the gap that it accepts without the fill."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from engine.syntax.brackets import Brackets, pair
from engine.syntax.budget import Budget
from engine.syntax.compiling import CONTINUES, Chunk, Complaint, chunks, complaint
from engine.syntax.judging import AS_BEFORE, WHOLE, OutOfTime, Verdict, of_brackets, specific, tails
from engine.syntax.problems import Problem
from engine.syntax.scaffolds import Scaffold, scaffolds

_LACKS = ("expected an indented block", "expected 'except' or 'finally' block")
_ENDS = re.compile(r"invalid syntax$|expected '[^']+'$")
"""Complaints about a token that nothing may go on with."""
_SEARCHED = 80
"""Scaffolds tried in one piece of code."""
_KEPT = 6
_CHARACTERS_PER_MS = 2000
"""Ordinary code compiles about twice as fast."""


class CompilerJudge:
    """Judges fills of one gap."""

    def __init__(self, before: str, after: str, old: str, brackets: Brackets) -> None:
        """`brackets` are those around the gap."""
        self._old = old
        self._before, self._after = before, after
        self._brackets = brackets
        self._chunks = chunks(before, after, len(before) - self._brackets.depth)
        self._needs: dict[Chunk, list[Scaffold]] = {}
        self._candidates: list[Scaffold] | None = None
        self._empty: dict[Chunk, Complaint | None] = {}
        """What is wrong with pieces of code without a fill."""

    def verdict(self, fill: str, budget: Budget) -> Verdict | None:
        """What the fill adds; None where the code around the gap is so broken that the compiler can't tell.

        Raises OutOfTime.
        """
        if not self._chunks:
            return None
        *smaller, text = self._chunks
        objection = _complaint(text.text(fill), budget)
        if objection is None:
            return WHOLE
        # It reads from the left: what it can't go on with is no fault of what stands before or behind.
        if _ENDS.match(objection.message) and 0 <= objection.offset - len(text.before) < len(fill):
            return self._refused(text, fill, objection)
        if needs := self._needed(text, budget):
            return self._judged(text, fill, needs, objection, budget)
        for chunk in reversed(smaller):
            needs = self._needed(chunk, budget)
            if needs and self._stays_inside(fill):
                nearer = _complaint(chunk.text(fill), budget)
                if nearer is None:
                    return AS_BEFORE if self._is_nearby(objection, fill) else WHOLE
                return self._judged(chunk, fill, needs, nearer, budget)
        return None

    def _stays_inside(self, fill: str) -> bool:
        """Whether a fill leaves the pieces of code around the gap where they are: it opens nothing that ends behind
        them and does not go on with a statement that begins before them."""
        pairing = pair(self._brackets.head + fill, "python")
        return not (pairing.pending or pairing.unclosed or CONTINUES.match(fill.lstrip()))

    def _judged(self, chunk: Chunk, fill: str, needs: list[Scaffold], objection: Complaint, budget: Budget) -> Verdict:
        if self._lacking_before(chunk, objection, budget) or self._unfinished_before(chunk, fill, needs, budget):
            return AS_BEFORE
        return self._refused(chunk, fill, objection)

    def _refused(self, chunk: Chunk, fill: str, objection: Complaint) -> Verdict:
        at = min(max(0, objection.offset - len(chunk.before)), len(fill))
        problem = Problem(start=at, end=min(at + 1, len(fill)), what=objection.message)
        return Verdict(problems=specific([problem, *of_brackets(fill, self._brackets)], len(fill)), whole=False)

    def _is_nearby(self, objection: Complaint, fill: str) -> bool:
        """Whether the definition around the gap is where the whole text is broken."""
        text, definition = self._chunks[-1], (self._chunks[:-1] or self._chunks)[:2][-1]
        before, after = len(text.before) - objection.offset, objection.offset - len(text.before) - len(fill)
        return before <= len(definition.before) and after <= len(definition.after)

    def _lacking_before(self, chunk: Chunk, objection: Complaint, budget: Budget) -> bool:
        """Whether the same block is empty without the fill."""
        if not objection.message.startswith(_LACKS):
            return False
        if chunk not in self._empty:
            self._empty[chunk] = _complaint(chunk.text(""), budget)
        empty = self._empty[chunk]
        return empty is not None and empty.message == objection.message

    def _unfinished_before(self, chunk: Chunk, fill: str, needs: list[Scaffold], budget: Budget) -> bool:
        """Whether nothing is wrong but what was missing without the fill."""
        return needs[0].finishes and any(
            _complaint(chunk.text(fill + tail), budget) is None
            for need in needs
            for tail in tails(fill, need, self._brackets)
        )

    def _needed(self, chunk: Chunk, budget: Budget) -> list[Scaffold]:
        """Scaffolds with which a piece of code compiles, those that add least first."""
        if chunk not in self._needs:
            if any(_complaint(chunk.text(reference), budget) is None for reference in {"", self._old}):
                self._needs[chunk] = [Scaffold()]
            else:
                self._needs[chunk] = list(_clean(chunk, self._searched(budget), budget))
        return self._needs[chunk]

    def _searched(self, budget: Budget) -> list[Scaffold]:
        """Scaffolds that suit the smallest piece of code that any suits."""
        if self._candidates is None:
            everything = list(islice(scaffolds(self._before, self._after, "python"), _SEARCHED))
            found = (list(islice(_clean(chunk, everything, budget), _KEPT)) for chunk in self._chunks[:2])
            self._candidates = next((clean for clean in found if clean), [])
        return self._candidates


def _complaint(text: str, budget: Budget) -> Complaint | None:
    """Raises OutOfTime where a compilation would take longer than there is time."""
    if budget.left_ms() < len(text) / _CHARACTERS_PER_MS:
        raise OutOfTime
    return complaint(text)


def _clean(chunk: Chunk, scaffolds: list[Scaffold], budget: Budget) -> Iterator[Scaffold]:
    return (each for each in scaffolds if _complaint(chunk.text(each.text) + each.end, budget) is None)
