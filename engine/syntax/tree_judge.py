"""Judge fills by tree-sitter: the trees with and without the fill are compared, node by node."""

from __future__ import annotations

from dataclasses import dataclass

from engine.syntax.brackets import brackets_near
from engine.syntax.budget import Budget
from engine.syntax.judging import AS_BEFORE, WHOLE, OutOfTime, Verdict, of_brackets, specific, tails
from engine.syntax.parsing import encoded
from engine.syntax.problems import Found, Gap, Problem, find, known
from engine.syntax.scaffolds import Scaffold, scaffolds
from engine.syntax.tree import SyntaxTree


@dataclass(frozen=True, slots=True)
class _Version:
    """The problems of the text with something in the gap."""

    gap: Gap
    found: list[Found]

    @property
    def clean_at_gap(self) -> bool:
        return not any(self.gap.touches(found) for found in self.found)


@dataclass(frozen=True, slots=True)
class _Reference:
    """The text around the gap with what it needs to be as whole as it can be."""

    scaffold: Scaffold
    clean: bool
    known: frozenset[tuple[str, int, int]]


class TreeJudge:
    """Judges fills of one gap: the place `at` in the text of a tree, which has nothing in the gap."""

    def __init__(self, tree: SyntaxTree, at: int, old: str) -> None:
        self._tree, self._at, self._old = tree, at, old
        self._brackets = brackets_near(tree.text[:at], tree.text[at:], tree.language)
        self._first = tree.byte(at)
        self._reference: _Reference | None = None

    def verdict(self, fill: str, budget: Budget) -> Verdict:
        """What the fill adds. Raises OutOfTime."""
        version = self._version(fill, "", budget)
        if not version.found:
            return WHOLE
        reference = self._referred(budget)
        new = self._new(version, reference)
        if new and self._unfinished_before(fill, reference, budget):
            return AS_BEFORE
        if not new and version.clean_at_gap:
            return WHOLE
        problems = [self._problem(found, version.gap, fill) for found in new] + of_brackets(fill, self._brackets)
        return Verdict(problems=specific(problems, len(fill)), whole=False)

    def _unfinished_before(self, fill: str, reference: _Reference, budget: Budget) -> bool:
        """Whether nothing is wrong but what was missing without the fill."""
        if not (reference.clean and reference.scaffold.finishes):
            return False
        end = reference.scaffold.end
        return any(
            not self._new(self._version(fill + tail, end, budget), reference)
            for tail in tails(fill, reference.scaffold, self._brackets)
        )

    def _referred(self, budget: Budget) -> _Reference:
        if self._reference is None:
            self._reference = self._refer(budget)
        return self._reference

    def _refer(self, budget: Budget) -> _Reference:
        empty = self._version("", "", budget)
        best, fewest, plain = Scaffold(""), empty, [empty]
        if self._old:
            plain.append(self._version(self._old, "", budget))
            fewest = min(plain, key=lambda version: len(version.found))
        for scaffold in scaffolds(self._tree.text[: self._at], self._tree.text[self._at :], self._tree.language):
            if not fewest.found:
                break
            version = self._version(scaffold.standin + scaffold.tail, scaffold.end, budget)
            if len(version.found) < len(fewest.found):
                best, fewest = scaffold, version
        if fewest.clean_at_gap and not fewest.found:
            return _Reference(best, True, frozenset())
        elsewhere = [
            (version.gap, [found for found in version.found if not version.gap.touches(found)]) for version in plain
        ]
        everything = [(version.gap, version.found) for version in plain]
        others = elsewhere if fewest.clean_at_gap else everything
        return _Reference(best, fewest.clean_at_gap, known([(fewest.gap, fewest.found), *others]))

    def _version(self, filling: str, end: str, budget: Budget) -> _Version:
        tree = self._tree.edited(self._at, self._at, filling, budget) if filling else self._tree
        if tree and end:
            tree = tree.edited(len(tree.text), len(tree.text), end, budget)
        found = tree and find(tree.root, budget)
        if tree is None or found is None:
            raise OutOfTime
        last = self._first + len(encoded(filling))
        return _Version(Gap(self._first, last, len(tree.data) - len(encoded(end))), found)

    def _new(self, version: _Version, reference: _Reference) -> list[Found]:
        return [found for found in version.found if reference.known.isdisjoint(version.gap.places(found))]

    def _problem(self, found: Found, gap: Gap, fill: str) -> Problem:
        """Where a problem lies in the fill, or at which end of it if it lies outside."""
        data = encoded(fill)
        start, end = (
            len(data[: max(0, min(byte, gap.last) - gap.first)].decode(errors="ignore"))
            for byte in (found.start, found.end)
        )
        return Problem(start=start, end=end, what=found.what)
