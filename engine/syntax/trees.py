"""Trees of the documents that fills were asked for lately, kept so that a keystroke costs an edit and not a parse."""

from __future__ import annotations

from engine.syntax.budget import Budget
from engine.syntax.tree import SyntaxTree, common_head, common_tail, parsed


class Trees:
    """Remembers the latest `capacity` texts, and finds the one that a new text is an edit of. Not thread-safe."""

    def __init__(self, capacity: int = 8) -> None:
        self._capacity = capacity
        self._trees: list[SyntaxTree] = []

    def tree(self, text: str, language: str, budget: Budget | None = None) -> SyntaxTree | None:
        """The tree of a text; None if the language has no grammar or the budget ran out."""
        near = max(
            (tree for tree in self._trees if tree.language == language),
            key=lambda tree: _shared(tree.text, text),
            default=None,
        )
        edit = near and 2 * _shared(near.text, text) > len(text)
        tree = near.updated(text, budget) if near and edit else parsed(text, language, budget)
        if tree:
            self._trees = [known for known in self._trees if not (edit and known is near)]
            self._trees = [tree, *self._trees][: self._capacity]
        return tree

    @property
    def nbytes(self) -> int:
        """Bytes of text held, trees not counted."""
        return sum(len(tree.data) for tree in self._trees)


def _shared(left: str, right: str) -> int:
    """How many characters two texts begin and end with in common."""
    head = common_head(left, right)
    return head + common_tail(left[head:], right[head:])
