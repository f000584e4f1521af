"""The problems of a syntax tree, compared with those of another version of the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from engine.common.wire import Wire
from engine.syntax.budget import Budget

_ASK_EVERY = 256


class Problem(Wire, frozen=True, kw_only=True):
    """A problem that a fill adds, at `fill[start:end]`. Empty where something is missing; at an end of the fill where
    the problem shows outside of it."""

    start: int
    end: int
    what: str
    """For logs: "error", "missing )", a rule's or a compiler's message."""


@dataclass(frozen=True, slots=True)
class Found:
    """An ERROR or MISSING node, in bytes of one version of the text."""

    what: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GapSpan:
    """The part of one version of the text that fills the gap: `data[first:last]` of `size` bytes."""

    first: int
    last: int
    size: int

    def places(self, found: Found) -> Iterator[tuple[str, int, int]]:
        """Names of a problem outside of the gap that all versions of the text share: places before the gap count from
        the beginning, those after it from the end. None for one that ends inside the gap."""
        return ((found.what, start, end) for start in self._ends(found.start) for end in self._ends(found.end))

    def holds(self, found: Found) -> bool:
        """Whether the problem lies in the gap, and not only at its end."""
        return self.first <= found.start < self.last and found.end <= self.last

    def touches(self, found: Found, margin: int = 0) -> bool:
        """Whether the problem is in the gap, around it, or at most so many bytes away."""
        return found.start <= self.last + margin and found.end >= self.first - margin

    def _ends(self, byte: int) -> list[int]:
        before = [byte] if byte <= self.first else []
        return [*before, byte - self.size - 1] if byte >= self.last else before


def find(root: Node, budget: Budget) -> list[Found] | None:
    """All ERROR and MISSING nodes, in the order of the text; None if the budget ran out."""
    found: list[Found] = []
    if not root.has_error:
        return found
    cursor = root.walk()
    steps = 0
    while True:
        node = cursor.node
        if node is None:
            return found
        if node.is_missing:
            found.append(Found(f"missing {node.type}", node.start_byte, node.end_byte))
        elif node.is_error:
            found.append(Found("error", node.start_byte, node.end_byte))
        if not (node.has_error and cursor.goto_first_child()):
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return found
        steps += 1
        if steps % _ASK_EVERY == 0 and budget.over():
            return None


def known(references: Iterable[tuple[GapSpan, Iterable[Found]]]) -> frozenset[tuple[str, int, int]]:
    """Names of all problems in some versions of a text."""
    return frozenset(name for gap, found in references for each in found for name in gap.places(each))
