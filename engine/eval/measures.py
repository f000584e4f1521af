"""What a fill is worth beside the truth."""

from __future__ import annotations

from collections.abc import Callable

from rapidfuzz.distance import Levenshtein

from engine.eval.inside.limits import Limits
from engine.eval.sandbox import Printed, Verdict, run_program, run_test
from engine.eval.tasks import Runs, Task, UnitTest
from engine.syntax.budget import Budget
from engine.syntax.compiler import diagnose
from engine.syntax.languages import language_of
from engine.syntax.validator import Validator

_SYNTAX_MS = 2000.0


def similarity(text: str, truth: str) -> float:
    """1 minus the edits (Levenshtein) by the length of the longer, in [0, 1]."""
    return Levenshtein.normalized_similarity(text, truth)


def is_clean(task: Task, text: str) -> bool | None:
    """Whether a fill adds no syntax problem to its file; None where that can't be told."""
    language = language_of(task.language)
    if language is None:
        return None
    found = Validator(task.prefix, task.suffix, language).verdict(text, Budget(_SYNTAX_MS))
    return found and found.is_clean


def refusal(task: Task, text: str) -> Verdict | None:
    """The verdict where Python does not even begin with the text; a sandbox would cost a hundred times as much."""
    refused = diagnose(task.prefix + text + task.suffix) if task.check else None
    return Verdict(passed=False, reason=f"SyntaxError: {refused.message}") if refused else None


def verdict(
    task: Task, text: str, limits: Limits | None = None, should_stop: Callable[[], bool] = lambda: False
) -> Verdict | None:
    """Whether the task's own tests pass with `text` in the gap; None where there are none. It means nothing once
    `should_stop`, which ends them."""
    source = task.prefix + text + task.suffix
    if task.check is None:
        return None
    if isinstance(task.check, UnitTest):
        return run_test(source, task.check.test, task.check.entry_point, limits, should_stop)
    return _all_runs(task.check, lambda given: run_program(source, given, limits, should_stop))


def _all_runs(runs: Runs, run: Callable[[str], Printed]) -> Verdict:
    for number, (given, outputs) in enumerate(runs.cases, start=1):
        printed = run(given)
        if printed.code != 0:
            return Verdict(passed=False, reason=f"run {number} ended with {printed.code}")
        if _words(printed.output) not in map(_words, outputs):
            return Verdict(passed=False, reason=f"run {number} printed something else")
    return Verdict(passed=True)


def _words(text: str) -> list[list[str]]:
    """Line by line; white space between and around words does not count."""
    return [line.split() for line in text.split("\n") if line.strip()]
