"""Validation by tree-sitter: the trees with and without the fill are compared, node by node."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from engine.syntax.brackets import Brackets, brackets_near, pair
from engine.syntax.budget import Budget
from engine.syntax.continuations import Continuation, continuations
from engine.syntax.problems import Found, GapSpan, Problem, find, known
from engine.syntax.rules import violations
from engine.syntax.tree import SyntaxTree, encoded, parsed
from engine.syntax.verdict import AS_BEFORE, WHOLE, OutOfTime, Verdict, refusal, tails, unpaired_brackets

_WINDOW = 1500
"""Characters on either side of a gap."""
_NEAR = 200
"""Bytes between a problem and the gap that may have caused it."""
_SEARCHED = 100
"""Continuations tried in a window."""
_KEPT = 6


@dataclass(frozen=True, slots=True)
class _Version:
    """The problems of the text with something in the gap."""

    tree: SyntaxTree
    gap: GapSpan
    found: list[Found]


@dataclass(frozen=True, slots=True)
class _Reference:
    """The text around the gap, completed as far as possible."""

    finishing: list[Continuation]
    """Continuations that complete it; empty if it is complete."""
    known: frozenset[tuple[str, int, int]]
    """Names of the problems that remain: see `GapSpan.places`."""
    unfinished: frozenset[tuple[str, int, int]]
    """Names of the problems elsewhere that remain until it is complete."""

    def new(self, version: _Version) -> list[Found]:
        """The problems of another version that this one lacks."""
        new = [found for found in version.found if self.known.isdisjoint(version.gap.places(found))]
        # Where other code is broken, one parse recovers from it here and the next one there: that is no fill's fault.
        return [found for found in new if version.gap.holds(found)] if self.known else new


class TreeValidator:
    """Validates fills of one gap: the place `at` in the text of a tree, which has nothing in the gap."""

    def __init__(self, tree: SyntaxTree, at: int, old: str, brackets: Brackets | None = None) -> None:
        """`brackets` are those of the tree's text, where they are known already."""
        self._tree, self._at, self._old = tree, at, old
        self._brackets = brackets or brackets_near(tree.text[:at], tree.text[at:], tree.language)
        self._first = tree.byte(at)
        self._reference: _Reference | None = None

    def verdict(self, fill: str, budget: Budget) -> Verdict:
        """The verdict on a fill. Raises OutOfTime."""
        version = self._version(fill, budget)
        broken = [_problem(found, version.gap, fill) for found in self._violated(version, budget)]
        if broken:
            return refusal(fill, broken)
        if not version.found:
            return WHOLE
        if self._reference is None:
            self._reference = self._refer(budget)
        new = self._reference.new(version)
        if new and self._unfinished_before(fill, version, self._reference, budget):
            return AS_BEFORE
        if (
            not new
            and not any(version.gap.touches(found, _NEAR) for found in version.found)
            and _balanced(version.tree)
        ):
            return WHOLE
        problems = [_problem(found, version.gap, fill) for found in new]
        return refusal(fill, problems + unpaired_brackets(fill, self._brackets))

    def _violated(self, version: _Version, budget: Budget) -> list[Found]:
        """The rules that the fill breaks and that are not broken without it."""
        found = _violations(version)
        if not found:
            return []
        plain = [self._version(text, budget) for text in {"", self._old}]
        broken = known((each.gap, _violations(each)) for each in plain)
        return [each for each in found if broken.isdisjoint(version.gap.places(each))]

    def _unfinished_before(self, fill: str, version: _Version, reference: _Reference, budget: Budget) -> bool:
        """Whether the only problem is something that was missing without the fill."""
        if all(not reference.unfinished.isdisjoint(version.gap.places(found)) for found in version.found):
            return True
        return any(
            not reference.new(self._version(fill + tail, budget, continuation.end))
            for continuation in reference.finishing
            for tail in tails(fill, continuation, self._brackets)
        )

    def _refer(self, budget: Budget) -> _Reference:
        """Find the problems that no text in the gap removes: those of the version with the fewest."""
        candidates = [Continuation(), *([Continuation(standin=self._old)] if self._old else [])]
        versions = [self._continued(each, budget) for each in candidates]
        if all(version.found for version in versions):
            more = self._candidates(budget)
            candidates += more
            versions += [self._continued(each, budget) for each in more]
        counts = [len(version.found) for version in versions]
        best = [each for each, count in zip(candidates, counts, strict=True) if count == min(counts)]
        version, empty = versions[counts.index(min(counts))], versions[0]
        outside = [found for found in empty.found if not empty.gap.touches(found)]
        return _Reference(
            finishing=best if best[0].finishes else [],
            known=known([(version.gap, version.found)]),
            unfinished=known([(empty.gap, outside)]) if best[0].finishes else frozenset(),
        )

    def _candidates(self, budget: Budget) -> list[Continuation]:
        """The continuations that suit the lines around the gap best, so that the whole text is not parsed with each."""
        before, after = self._tree.text[: self._at], self._tree.text[self._at :]
        low = max(before.find("\n", max(0, len(before) - _WINDOW)), len(before) - _WINDOW, 0)
        window = parsed(before[low:] + after[:_WINDOW], self._tree.language, budget)
        if window is None:
            raise OutOfTime
        nearby = TreeValidator(window, self._at - low, "")
        rated: list[tuple[int, Continuation]] = []
        for each in islice(continuations(before, after, self._tree.language), _SEARCHED):
            rated.append((len(nearby._continued(each, budget).found), each))
            if sum(not problems for problems, _ in rated) == _KEPT:
                break
        return [each for _, each in sorted(rated, key=lambda rating: rating[0])[:_KEPT]]

    def _continued(self, continuation: Continuation, budget: Budget) -> _Version:
        return self._version(continuation.text, budget, continuation.end)

    def _version(self, filling: str, budget: Budget, end: str = "") -> _Version:
        tree = self._tree.edited(self._at, self._at, filling, budget) if filling else self._tree
        if tree and end:
            tree = tree.edited(len(tree.text), len(tree.text), end, budget)
        found = tree and find(tree.root, budget)
        if tree is None or found is None:
            raise OutOfTime
        last = self._first + len(encoded(filling))
        return _Version(tree, GapSpan(self._first, last, len(tree.data) - len(encoded(end))), found)


def _violations(version: _Version) -> list[Found]:
    return violations(version.tree, version.gap.first, version.gap.last)


def _balanced(tree: SyntaxTree) -> bool:
    """Whether the brackets of the whole text pair: one that the gap lacks shows as a problem far away."""
    pairing = pair(tree.text, tree.language)
    return not (pairing.unopened or pairing.unclosed)


def _problem(found: Found, gap: GapSpan, fill: str) -> Problem:
    """Where a problem lies in the fill, or at which end of it if it lies outside."""
    data = encoded(fill)
    start, end = (
        len(data[: max(0, min(byte, gap.last) - gap.first)].decode(errors="ignore"))
        for byte in (found.start, found.end)
    )
    return Problem(start=start, end=end, what=found.what)
