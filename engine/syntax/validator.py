"""Which problems a fill adds to its file."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

from msgspec.structs import replace

from engine.syntax.brackets import Brackets, brackets_near
from engine.syntax.budget import Budget
from engine.syntax.compiler import CompilerValidator
from engine.syntax.focus import SMALL, focus
from engine.syntax.tree import SyntaxTree, parsed, plain
from engine.syntax.tree_validator import TreeValidator
from engine.syntax.verdict import AS_BEFORE, WHOLE, OutOfTime, Verdict, refusal, unended_strings, unpaired_brackets


class Validator:
    """Validates fills of one gap; what it learns about the text around the gap serves all of them."""

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
        """What the fill does to the syntax of the file; None if the language is unknown or the budget ran out.

        A problem counts if it is neither in the text with nothing in the gap nor in the text with `old` in it, and is
        not just what was missing there: see `continuations`. Never raises.
        """
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
        self._compiler = CompilerValidator(before, after, self._old, brackets) if self.language == "python" else None
        return True

    def _focus(self, document: SyntaxTree, budget: Budget) -> tuple[str, str]:
        """What decides about the gap: where the tree has errors, everything, for they may show far from their cause."""
        start, end = len(self.before), len(self.before) + len(self._old)
        if len(document.data) > SMALL:
            for standin in dict.fromkeys((self._old, "", "x", "x" + self.brackets.closers)):
                tree = document if standin == self._old else document.edited(start, end, standin, budget)
                if tree and not tree.root.has_error:
                    return focus(tree, start, start + len(standin))
        return self.before, self.after
