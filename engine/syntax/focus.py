"""The part of a large file that decides about a gap: whatever is far away and whole is left out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from tree_sitter import Node

from engine.syntax.languages import BLOCKS
from engine.syntax.tree import SyntaxTree

SMALL = 12_000
"""Texts up to this many bytes are not cut."""
_MARGIN = 3_000
"""Bytes on either side of the gap from which nothing is left out."""
_SPLITTABLE = BLOCKS | {"preproc_ifdef", "preproc_if", "statement_list", "linkage_specification"}


def focus(tree: SyntaxTree, start: int, end: int) -> tuple[str, str]:
    """The text before and behind `tree.text[start:end]`, without the neighbours of the nodes around it that are
    more than a margin away. What remains has the same syntax around the gap as the whole text."""
    if len(tree.data) <= SMALL:
        return tree.text[:start], tree.text[end:]
    first, last = tree.byte(start), tree.byte(end)
    left: list[tuple[int, int]] = []
    right: list[tuple[int, int]] = []
    for node in _around(tree.root, first, last):
        children = node.named_children
        low = bisect_right(children, first - _MARGIN, key=lambda child: child.end_byte)
        high = bisect_left(children, last + _MARGIN, key=lambda child: child.start_byte)
        if low < high:
            # What a file begins with may say what it is.
            begins = children[1] if node.parent is None and len(children) > 1 else children[0]
            left.append((begins.start_byte, children[low].start_byte))
            right.append((children[high - 1].end_byte, children[-1].end_byte))
    return _without(tree, 0, first, left), _without(tree, last, len(tree.data), right[::-1])


def _around(root: Node, first: int, last: int) -> list[Node]:
    """The nodes around the gap whose children can be left out one by one, outermost first."""
    found = [root] if not root.is_error else []
    cursor = root.walk()
    while cursor.goto_first_child_for_byte(first) is not None:
        node = cursor.node
        if node is None or node.start_byte > first or node.end_byte < last or node.is_error:
            break
        if node.type in _SPLITTABLE:
            found.append(node)
    return found


def _without(tree: SyntaxTree, first: int, last: int, spans: list[tuple[int, int]]) -> str:
    """`data[first:last]` without some spans, in order, as text."""
    pieces: list[bytes] = []
    at = first
    for low, high in spans:
        if at <= low < high:
            pieces.append(tree.data[at:low])
            at = high
    return b"".join((*pieces, tree.data[at:last])).decode()
