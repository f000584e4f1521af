"""What a fill is worth beside the truth."""

from __future__ import annotations

from collections.abc import Callable

from engine.eval.sandbox import SandboxResult, run_program, run_test
from engine.eval.tasks import Task, UnitTest
from engine.syntax.budget import Budget
from engine.syntax.compiler import diagnose
from engine.syntax.languages import language_of
from engine.syntax.validator import Validator

_SYNTAX_MS = 2000.0


def is_clean(task: Task, text: str) -> bool | None:
    """Whether a fill adds no syntax problem to its file; None where that can't be told."""
    language = language_of(task.language)
    if language is None:
        return None
    found = Validator(task.prefix, task.suffix, language).verdict(text, Budget(_SYNTAX_MS))
    return found and found.is_clean


def syntax_error(task: Task, text: str) -> str:
    """Why Python does not even begin with a text that has tests: a sandbox would cost a hundred times as much."""
    refused = diagnose(task.prefix + text + task.suffix) if task.check else None
    return f"SyntaxError: {refused.message}" if refused else ""


def run_tests(task: Task, text: str, should_stop: Callable[[], bool] = lambda: False) -> SandboxResult | None:
    """Whether the task's own tests pass with `text` in the gap; None where there are none. It means nothing once
    `should_stop`, which ends them."""
    source = task.prefix + text + task.suffix
    if task.check is None:
        return None
    if isinstance(task.check, UnitTest):
        return run_test(source, task.check.test, task.check.entry_point, should_stop=should_stop)
    for number, (given, outputs) in enumerate(task.check.cases, start=1):
        ran = run_program(source, given, should_stop=should_stop)
        if ran.code != 0:
            return SandboxResult(passed=False, reason=f"run {number} ended with {ran.code}")
        if _words(ran.output) not in map(_words, outputs):
            return SandboxResult(passed=False, reason=f"run {number} printed something else")
    return SandboxResult(passed=True)


def _words(text: str) -> list[list[str]]:
    """Line by line; white space between and around words does not count."""
    return [line.split() for line in text.split("\n") if line.strip()]
