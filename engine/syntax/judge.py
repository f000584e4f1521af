"""Which problems a fill adds to its file."""

from __future__ import annotations

from functools import cached_property

from msgspec.structs import replace

from engine.syntax.brackets import Brackets, brackets_near
from engine.syntax.budget import Budget
from engine.syntax.compiler_judge import CompilerJudge
from engine.syntax.focus import SMALL, focus
from engine.syntax.judging import AS_BEFORE, WHOLE, OutOfTime, Verdict, of_brackets, of_quotes, specific
from engine.syntax.parsing import plain
from engine.syntax.problems import Problem
from engine.syntax.tree import SyntaxTree, parsed
from engine.syntax.tree_judge import TreeJudge


class Judge:
    """Judges fills of one gap; what it learns about the text around the gap serves all of them."""

    def __init__(self, before: str, after: str, language: str, old: str = "", tree: SyntaxTree | None = None) -> None:
        """`tree` is that of `before + old + after`, where there is one already; `language` is a `Grammar.name`."""
        self._document = tree if tree and tree.text == before + old + after else None
        self.before, self.after, self.language, self._old = plain(before), plain(after), language, plain(old)
        self._trees: TreeJudge | None = None
        self._compiler: CompilerJudge | None = None

    @cached_property
    def brackets(self) -> Brackets:
        """Those around the gap."""
        return brackets_near(self.before, self.after, self.language)

    def new_problems(self, fill: str, budget: Budget | None = None) -> tuple[Problem, ...] | None:
        """The problems of `Verdict`; None: unchecked."""
        verdict = self.verdict(fill, budget)
        return verdict and verdict.problems

    def verdict(self, fill: str, budget: Budget | None = None) -> Verdict | None:
        """What the fill does to the syntax of the file; None if the language is unknown or the budget ran out.

        A problem counts if it is neither in the text with nothing in the gap nor in the text with `old` in it, and is
        not just what was missing there: see `scaffolds`. Never raises.
        """
        budget = budget or Budget()
        try:
            trees = self._ready(budget)
            verdict = trees and self._judged(trees, plain(fill), budget)
        except OutOfTime:
            verdict = None
        if fill in ("", self._old):
            return verdict and (WHOLE if verdict.whole else AS_BEFORE)
        return verdict if verdict and (verdict.whole or verdict.problems) else self._left(plain(fill), verdict)

    def _left(self, fill: str, verdict: Verdict | None) -> Verdict | None:
        """What no parser is needed for, where none can tell what is the fill's fault: brackets and quotes."""
        problems = [*of_brackets(fill, self.brackets), *of_quotes(fill, self.brackets)]
        return Verdict(problems=specific(problems, len(fill)), whole=False) if problems else verdict

    def _judged(self, trees: TreeJudge, fill: str, budget: Budget) -> Verdict:
        if self._compiler is None:
            return trees.verdict(fill, budget)
        return self._compiler.verdict(fill, budget) or replace(trees.verdict(fill, budget), whole=False)

    def _ready(self, budget: Budget) -> TreeJudge | None:
        """Parse the text around the gap, once."""
        if self._trees is None:
            document = self._document or parsed(self.before + self._old + self.after, self.language, budget)
            if document is None:
                return None
            start = len(self.before)
            before, after = self._focus(document, budget)
            whole = (before, after) == (self.before, self.after)
            tree = (
                document.edited(start, start + len(self._old), "", budget)
                if whole
                else parsed(before + after, self.language, budget)
            )
            if tree is None:
                return None
            brackets = self.brackets if whole else brackets_near(before, after, self.language)
            self._trees = TreeJudge(tree, len(before), self._old, document.data, brackets)
            self._compiler = CompilerJudge(before, after, self._old, brackets) if self.language == "python" else None
        return self._trees

    def _focus(self, document: SyntaxTree, budget: Budget) -> tuple[str, str]:
        """What decides about the gap. A tree with errors may misjudge what is far from it: then everything does."""
        start, end = len(self.before), len(self.before) + len(self._old)
        if len(document.data) > SMALL:
            for standin in dict.fromkeys((self._old, "", "x", "x" + self.brackets.closers)):
                tree = document if standin == self._old else document.edited(start, end, standin, budget)
                if tree and not tree.root.has_error:
                    return focus(tree, start, start + len(standin))
        return self.before, self.after


def new_problems(
    before: str, fill: str, after: str, language: str, old: str = "", budget: Budget | None = None
) -> tuple[Problem, ...] | None:
    """The problems that one fill adds: see `Judge`."""
    return Judge(before, after, language, old).new_problems(fill, budget)
