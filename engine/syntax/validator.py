"""Finds the problems that a fill adds to its file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import suppress
from functools import cached_property

from msgspec.structs import replace
from tree_sitter import Node

from engine.syntax.brackets import Brackets, brackets_near
from engine.syntax.budget import Budget
from engine.syntax.compiler import CompilerValidator
from engine.syntax.languages import BLOCKS, PYTHON
from engine.syntax.tree import SyntaxTree, parsed, plain
from engine.syntax.tree_validator import TreeValidator
from engine.syntax.verdict import AS_BEFORE, WHOLE, OutOfTime, Verdict, refusal, unended_strings, unpaired_brackets

SMALL = 12_000
"""Texts up to this many bytes are not cut."""
_MARGIN = 3_000
"""Bytes on either side of the gap from which nothing is left out."""
_SPLITTABLE = BLOCKS | {"preproc_ifdef", "preproc_if", "statement_list", "linkage_specification"}


class Validator:
    """Validates fills of one gap; results about the text around the gap are kept for all of them."""

    def __init__(self, before: str, after: str, language: str, old: str = "", tree: SyntaxTree | None = None) -> None:
        """`tree` is that of `before + old + after`, where there is one already; `language` is a `Grammar.name`."""
        self._document = tree if tree and tree.text == before + old + after else None
        self.before, self.after, self.language, self._old = plain(before), plain(after), language, plain(old)
        self._trees: TreeValidator | None = None
        self._compiler: CompilerValidator | None = None

    @cached_property
    def brackets(self) -> Brackets:
        return brackets_near(self.before, self.after, self.language)

    def verdict(self, fill: str, budget: Budget | None = None) -> Verdict | None:
        """The verdict on a fill; None if the language is unknown or the budget ran out. A problem counts if neither the
        text with an empty gap nor the text with `old` has it, and it is not just something that was missing there: see
        `continuations`. Never raises."""
        fill, verdict = plain(fill), None
        with suppress(OutOfTime):
            verdict = self._parsed_verdict(fill, budget or Budget())
        if fill in ("", self._old):
            return verdict and (WHOLE if verdict.whole else AS_BEFORE)
        if verdict and (verdict.whole or verdict.problems):
            return verdict
        # No parser is needed, and where the code around the gap is broken none can tell what is the fill's fault.
        problems = unpaired_brackets(fill, self.brackets) + unended_strings(fill, self.brackets)
        return refusal(fill, problems) if problems else verdict

    def _parsed_verdict(self, fill: str, budget: Budget) -> Verdict | None:
        if self._trees is None and not self._parse(budget):
            return None
        assert self._trees
        by_compiler = self._compiler.verdict(fill, budget) if self._compiler else None
        if by_compiler:
            return by_compiler
        by_tree = self._trees.verdict(fill, budget)
        return replace(by_tree, whole=False) if self._compiler else by_tree

    def _parse(self, budget: Budget) -> bool:
        """The text around the gap, once; False if the language is unknown or the budget ran out."""
        document = self._document or parsed(self.before + self._old + self.after, self.language, budget)
        if document is None:
            return False
        start = len(self.before)
        before, after = self._focus(document, budget)
        whole = (before, after) == (self.before, self.after)
        tree = (
            document.edited(start, start + len(self._old), "", budget)
            if whole
            else parsed(before + after, self.language, budget)
        )
        if tree is None:
            return False
        brackets = self.brackets if whole else brackets_near(before, after, self.language)
        self._trees = TreeValidator(tree, len(before), self._old, brackets)
        if self.language in PYTHON:
            self._compiler = CompilerValidator(before, after, self._old, brackets)
        return True

    def _focus(self, document: SyntaxTree, budget: Budget) -> tuple[str, str]:
        """The text before and after the gap that is enough to validate fills; all of it if the tree has errors, which
        may show far from their cause."""
        start, end = len(self.before), len(self.before) + len(self._old)
        if len(document.data) > SMALL:
            for standin in dict.fromkeys((self._old, "", "x", "x" + self.brackets.closers)):
                tree = document if standin == self._old else document.edited(start, end, standin, budget)
                if tree and not tree.root.has_error:
                    return focus(tree, start, start + len(standin))
        return self.before, self.after


def focus(tree: SyntaxTree, start: int, end: int) -> tuple[str, str]:
    """The text before and after `tree.text[start:end]`, without the neighbours of the nodes around it that are
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
