"""Judge fills by tree-sitter: the trees with and without the fill are compared, node by node."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from engine.syntax.brackets import Brackets, brackets_near, pair
from engine.syntax.budget import Budget
from engine.syntax.judging import AS_BEFORE, WHOLE, OutOfTime, Verdict, of_brackets, specific, tails
from engine.syntax.parsing import encoded
from engine.syntax.problems import Found, Gap, Problem, find, known
from engine.syntax.rules import violations
from engine.syntax.scaffolds import Scaffold, scaffolds
from engine.syntax.tree import SyntaxTree, parsed

_WINDOW = 1500
"""Characters on either side of a gap."""
_SEARCHED = 100
"""Scaffolds tried in a window."""
_KEPT = 6


@dataclass(frozen=True, slots=True)
class _Version:
    """The problems of the text with something in the gap."""

    tree: SyntaxTree
    gap: Gap
    found: list[Found]

    @property
    def clean_near_gap(self) -> bool:
        return not any(self.gap.near(found) for found in self.found)


@dataclass(frozen=True, slots=True)
class _Reference:
    """The text around the gap with what it needs to be as whole as it can be."""

    finishing: list[Scaffold]
    """What would finish it, where it is unfinished."""
    known: frozenset[tuple[str, int, int]]
    """Names of the problems that remain: see `Gap.places`."""
    unfinished: frozenset[tuple[str, int, int]]
    """Names of the problems that show elsewhere as long as it is unfinished."""


class TreeJudge:
    """Judges fills of one gap: the place `at` in the text of a tree, which has nothing in the gap and may be but a part
    of the document."""

    def __init__(self, tree: SyntaxTree, at: int, old: str, document: bytes, brackets: Brackets | None = None) -> None:
        """`brackets` are those of the tree's text, where they are known already."""
        self._tree, self._at, self._old, self._document = tree, at, old, document
        self._brackets = brackets or brackets_near(tree.text[:at], tree.text[at:], tree.language)
        self._first = tree.byte(at)
        self._reference: _Reference | None = None

    def verdict(self, fill: str, budget: Budget) -> Verdict:
        """What the fill adds. Raises OutOfTime."""
        version = self._version(fill, "", budget)
        broken = [self._problem(found, version.gap, fill) for found in self._violated(version, budget)]
        if broken or not version.found:
            return Verdict(problems=specific(broken, len(fill)), whole=not broken)
        if self._reference is None:
            self._reference = self._refer(budget)
        new = self._new(version, self._reference)
        if new and self._unfinished_before(fill, self._reference, budget):
            return AS_BEFORE
        if not new and version.clean_near_gap and self._balanced(version):
            return WHOLE
        problems = [self._problem(found, version.gap, fill) for found in new] + of_brackets(fill, self._brackets)
        return Verdict(problems=specific(problems, len(fill)), whole=False)

    def _balanced(self, version: _Version) -> bool:
        """Whether the brackets of the whole text pair: one that the gap lacks shows as a problem far away."""
        pairing = pair(version.tree.text, version.tree.language)
        return not (pairing.unopened or pairing.unclosed)

    def _violations(self, version: _Version, budget: Budget) -> list[Found]:
        tree, gap = version.tree, version.gap
        return violations(tree.root, tree.data, self._document, tree.language, gap.first, gap.last, budget)

    def _violated(self, version: _Version, budget: Budget) -> list[Found]:
        """The rules that the fill breaks and that are not broken without it."""
        found = self._violations(version, budget)
        if found:
            plain = [self._version(text, "", budget) for text in {"", self._old}]
            broken = known((each.gap, self._violations(each, budget)) for each in plain)
            found = [each for each in found if broken.isdisjoint(version.gap.places(each))]
        return found

    def _unfinished_before(self, fill: str, reference: _Reference, budget: Budget) -> bool:
        """Whether nothing is wrong but what was missing without the fill."""
        version = self._version(fill, "", budget)
        if all(not reference.unfinished.isdisjoint(version.gap.places(found)) for found in version.found):
            return True
        return any(
            not self._new(self._version(fill + tail, scaffold.end, budget), reference)
            for scaffold in reference.finishing
            for tail in tails(fill, scaffold, self._brackets)
        )

    def _refer(self, budget: Budget) -> _Reference:
        """Find the problems that are there whatever stands in the gap: those of the version that has fewest."""
        candidates = [Scaffold(), *([Scaffold(standin=self._old)] if self._old else [])]
        versions = [self._scaffolded(scaffold, budget) for scaffold in candidates]
        if all(version.found for version in versions):
            more = self._candidates(budget)
            candidates += more
            versions += [self._scaffolded(scaffold, budget) for scaffold in more]
        counts = [len(version.found) for version in versions]
        best = [scaffold for scaffold, count in zip(candidates, counts, strict=True) if count == min(counts)]
        version, empty = versions[counts.index(min(counts))], versions[0]
        elsewhere = [found for found in empty.found if not empty.gap.touches(found)]
        return _Reference(
            finishing=best if best[0].finishes else [],
            known=known([(version.gap, version.found)]),
            unfinished=known([(empty.gap, elsewhere)]) if best[0].finishes else frozenset(),
        )

    def _candidates(self, budget: Budget) -> list[Scaffold]:
        """The scaffolds that suit the lines around the gap best; the whole text need not be parsed with each."""
        before, after = self._tree.text[: self._at], self._tree.text[self._at :]
        low = max(before.find("\n", max(0, len(before) - _WINDOW)), len(before) - _WINDOW, 0)
        window = parsed(before[low:] + after[:_WINDOW], self._tree.language, budget)
        if window is None:
            raise OutOfTime
        judge = TreeJudge(window, self._at - low, "", self._document)
        rated: list[tuple[int, Scaffold]] = []
        for scaffold in islice(scaffolds(before, after, self._tree.language), _SEARCHED):
            rated.append((len(judge._scaffolded(scaffold, budget).found), scaffold))
            if sum(not problems for problems, _ in rated) == _KEPT:
                break
        return [scaffold for _, scaffold in sorted(rated, key=lambda rating: rating[0])[:_KEPT]]

    def _scaffolded(self, scaffold: Scaffold, budget: Budget) -> _Version:
        return self._version(scaffold.text, scaffold.end, budget)

    def _version(self, filling: str, end: str, budget: Budget) -> _Version:
        tree = self._tree.edited(self._at, self._at, filling, budget) if filling else self._tree
        if tree and end:
            tree = tree.edited(len(tree.text), len(tree.text), end, budget)
        found = tree and find(tree.root, budget)
        if tree is None or found is None:
            raise OutOfTime
        last = self._first + len(encoded(filling))
        return _Version(tree, Gap(self._first, last, len(tree.data) - len(encoded(end))), found)

    def _new(self, version: _Version, reference: _Reference) -> list[Found]:
        new = [found for found in version.found if reference.known.isdisjoint(version.gap.places(found))]
        # Where other code is broken, one parse recovers from it here and the next one there: that is no fill's fault.
        return [found for found in new if version.gap.holds(found)] if reference.known else new

    def _problem(self, found: Found, gap: Gap, fill: str) -> Problem:
        """Where a problem lies in the fill, or at which end of it if it lies outside."""
        data = encoded(fill)
        start, end = (
            len(data[: max(0, min(byte, gap.last) - gap.first)].decode(errors="ignore"))
            for byte in (found.start, found.end)
        )
        return Problem(start=start, end=end, what=found.what)
