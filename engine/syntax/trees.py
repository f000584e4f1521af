"""Trees of the documents that fills were asked for lately, kept so that a keystroke costs an edit and not a parse."""

from __future__ import annotations

from engine.core.sequences import common_head, common_tail
from engine.syntax.budget import Budget
from engine.syntax.tree import SyntaxTree, parsed

_NBYTES = 1 << 20
"""Of text; its trees take about seventy times as much."""


class Trees:
    """Remembers the latest `capacity` texts, and finds the one that a new text is an edit of. Not thread-safe."""

    def __init__(self, capacity: int = 8, nbytes: int = _NBYTES) -> None:
        """`nbytes`: of the remembered texts together; the latest is remembered however large it is."""
        self._capacity, self._most = capacity, nbytes
        self._trees: list[SyntaxTree] = []

    def tree(self, text: str, language: str, budget: Budget | None = None) -> SyntaxTree | None:
        """The tree of a text; None if the language has no grammar or the budget ran out."""
        shared = [(_shared(tree.text, text), tree) for tree in self._trees if tree.language == language]
        common, near = max(shared, key=lambda pair: pair[0], default=(0, None))
        # A text that shares less is another one, and parsing it anew costs no more than editing.
        near = near if 2 * common > len(text) else None
        tree = near.updated(text, budget) if near else parsed(text, language, budget)
        if tree:
            self._remember(tree, near)
        return tree

    @property
    def nbytes(self) -> int:
        """Bytes of text held, trees not counted."""
        return sum(len(tree.data) for tree in self._trees)

    def _remember(self, tree: SyntaxTree, instead_of: SyntaxTree | None) -> None:
        others = [known for known in self._trees if known is not instead_of]
        self._trees = [tree, *others][: self._capacity]
        while len(self._trees) > 1 and self.nbytes > self._most:
            self._trees.pop()


def _shared(left: str, right: str) -> int:
    """How many characters two texts begin and end with in common."""
    head = common_head(left, right)
    return head + common_tail(left[head:], right[head:])
