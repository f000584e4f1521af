"""Answers questions about documents. Keeps the trees of the latest ones, and nothing else of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from engine.common.analysis import Analysis, SyntaxErrorRegion
from engine.syntax.budget import Budget
from engine.syntax.gap_check import GapCheck
from engine.syntax.insertions import LEAST_LIKELY, WORTH, Insertion, insertions
from engine.syntax.parsed_text import ParsedText, parsed_text
from engine.syntax.placeholders import placeholder_at
from engine.syntax.questions import (
    AnalyzeText,
    CallsToChange,
    Diagnose,
    Diagnosis,
    Inserted,
    Insertions,
    Question,
    Reply,
    Roles,
    RolesOf,
    SpanEdits,
    Tried,
    TryEdits,
    TryInsertions,
    ValidatedFill,
    ValidateFills,
    Validations,
)
from engine.syntax.rewritable import rewritable
from engine.syntax.roles import role_of
from engine.syntax.signatures import calls_to_change
from engine.syntax.syntax_errors import syntax_errors
from engine.syntax.tree import SyntaxTree, Trees

_KEPT = 4
"""Gaps whose surroundings are kept: a fill has several questions about its own."""
K = TypeVar("K")
V = TypeVar("V")


class Checks:
    """Answers one question at a time. Not thread-safe."""

    def __init__(self) -> None:
        self._forget()

    def answer(self, question: Question, budget_ms: float) -> Reply | None:
        """The answer; None where time or memory ran out, or the language is unknown. The budget is this thread's
        processor time: on a busy machine broken fills must not pass."""
        budget = Budget(budget_ms, time.thread_time)
        try:
            match question:
                case ValidateFills():
                    return self._validate(question, budget)
                case Diagnose():
                    text = self._parsed(question.text, question.language, budget)
                    return text and Diagnosis(severity=text.severity, errors=syntax_errors(text, budget))
                case TryEdits():
                    return self._try(question, budget)
                case TryInsertions():
                    return self._try_insertions(question, budget)
                case AnalyzeText():
                    tree = self._trees.tree(question.text, question.language, budget)
                    return tree and analyze(tree, question.cursor, budget, question.start)
                case RolesOf():
                    tree = self._trees.tree(question.text, question.language, budget)
                    return tree and Roles(spans=tuple(role_of(tree, *span) for span in question.spans))
                case CallsToChange():
                    texts = (question.before, question.text)
                    before, after = (self._trees.tree(each, question.language, budget) for each in texts)
                    found = before and after and calls_to_change(before, after, question.start)
                    return None if found is None else SpanEdits(edits=tuple(found))
        except (MemoryError, RecursionError):
            self._forget()
            return None

    def _forget(self) -> None:
        self._trees = Trees()
        self._gaps: dict[tuple[str, int, int, str, bool], GapCheck] = {}
        self._texts: dict[tuple[str, str], ParsedText] = {}
        self._insertions: dict[tuple[str, str, SyntaxErrorRegion], list[Insertion]] = {}

    def _validate(self, question: ValidateFills, budget: Budget) -> Validations:
        key = (question.text, question.start, question.end, question.language, question.may_swallow)
        gap = _remembered(self._gaps, key, lambda: GapCheck(question, self._trees))

        def validated(fill: str) -> ValidatedFill | None:
            if budget.over():
                return ValidatedFill(text=fill, verdict=None)
            return gap.cut(fill, budget) if question.cut else gap.validated(fill, budget, whole=question.whole)

        return Validations(fills=tuple(validated(fill) for fill in question.fills))

    def _parsed(self, text: str, language: str, budget: Budget) -> ParsedText | None:
        found = self._texts.get((text, language))
        if found is None:
            tree = self._trees.tree(text, language, budget)
            found = tree and parsed_text(tree, budget)
        return found and _remembered(self._texts, (text, language), lambda: found)

    def _try(self, question: TryEdits, budget: Budget) -> Tried | None:
        began = time.thread_time()
        start = self._parsed(question.text, question.language, budget)
        if start is None:
            return None
        tried: list[tuple[int, int] | None] = []
        for text in question.texts:
            if tried and (budget.over() or len(tried) - tried.count(None) == question.most):
                break
            edited = start.edited(question.start, question.end, text, budget)
            tried.append(edited and edited.severity)
        return Tried(severities=tuple(tried), spent_ms=(time.thread_time() - began) * 1000)

    def _try_insertions(self, question: TryInsertions, budget: Budget) -> Insertions | None:
        began = time.thread_time()
        text = self._parsed(question.text, question.language, budget)
        if text is None:
            return None
        key = (question.text, question.language, question.region)
        proposed = _remembered(self._insertions, key, lambda: insertions(text, question.region))
        found: list[Inserted] = []
        count = 0
        done = True
        for each in proposed[question.skip :]:
            if each.cost > min(question.limit, *(other.cost + WORTH for other in found), LEAST_LIKELY):
                break
            if count and budget.over():
                done = False
                break
            count += 1
            better = (
                text.edited(each.at, each.at + each.removed, each.text, budget)
                if question.start <= each.at <= question.end - each.removed
                else None
            )
            if better:
                found.append(
                    Inserted(at=each.at, new=each.text, removed=each.removed, cost=each.cost, severity=better.severity)
                )
        spent_ms = (time.thread_time() - began) * 1000
        return Insertions(count=count, found=tuple(found), done=done, spent_ms=spent_ms)


def analyze(tree: SyntaxTree, cursor: int, budget: Budget, start: int | None = None) -> Analysis:
    """Places and rewrites that a list of code actions needs; no model is run."""
    text = parsed_text(tree, budget)
    errors = syntax_errors(text, budget) if text else ()
    return Analysis(
        errors=errors,
        placeholder=placeholder_at(tree.text, cursor, tree.language),
        rewrites=rewritable(tree, cursor if start is None else start, cursor),
    )


def _remembered(known: dict[K, V], key: K, make: Callable[[], V]) -> V:
    """The value of a key, which becomes the latest of the kept ones."""
    value = known.pop(key) if key in known else make()
    known[key] = value
    while len(known) > _KEPT:
        del known[next(iter(known))]
    return value
