"""Fills every gap in every way, tests the fills meanwhile, and keeps the results."""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event

from rapidfuzz.distance import Levenshtein

from engine.lab.eval.results import Result, Results
from engine.lab.eval.rows import EvalRow
from engine.lab.eval.sandbox import SandboxResult, run_program, run_test, standard_limits
from engine.lab.eval.tasks import EvalTask
from engine.models.base import Model
from engine.syntax.budget import Budget
from engine.syntax.compiler import diagnose
from engine.syntax.languages import language_of
from engine.syntax.validator import Validator

WORKERS = max(1, (os.cpu_count() or 2) // 2)
"""Tests that run at once, beside the model."""
_MOST_PENDING = 64
"""Most fills that wait for their test, so that memory stays bounded."""
_SYNTAX_MS = 2000.0
_TOLD = 300
"""Most characters of a test's output that are kept."""
_PULSE_S = 0.2
_Testing = Future[SandboxResult | None]
_NO_TEST = _Testing()
_NO_TEST.set_result(None)


def evaluate(
    model: Model,
    tasks: Sequence[EvalTask],
    rows: Sequence[EvalRow],
    results: Results,
    *,
    seed: int = 0,
    max_tokens: int = 96,
    workers: int = WORKERS,
    on_done: Callable[[], None] = lambda: None,
) -> None:
    """Add a result for each row and task that has none yet, calling `on_done` after each.

    A task is filled by all rows before the next one begins, so that a run that is cut off compares them fairly. An
    interrupt ends the run at once: results that are tested by then are added, running tests are ended.
    """
    pending: deque[tuple[Result, _Testing]] = deque()
    stopped = Event()
    pool = ThreadPoolExecutor(workers)

    def collect(most: int) -> None:
        while pending and (len(pending) > most or pending[0][1].done()):
            results.add(_with_outcome(*pending.popleft()))
            on_done()

    try:
        for task in tasks:
            tests: dict[str, _Testing] = {}
            for row in rows:
                if (row.name, task.name) not in results:
                    result = _filled(model, row, task, seed, max_tokens)
                    if result.passed is None and result.text not in tests:
                        tests[result.text] = pool.submit(run_tests, task, result.text, should_stop=stopped.is_set)
                    pending.append((result, tests.get(result.text, _NO_TEST)))
                    collect(_MOST_PENDING)
        collect(0)
    except KeyboardInterrupt:
        for result, test in pending:
            if test.done():
                results.add(_with_outcome(result, test))
        raise
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)


def _filled(model: Model, row: EvalRow, task: EvalTask, seed: int, max_tokens: int) -> Result:
    """A result whose tests have not run; text that Python can't parse needs none."""
    began = time.perf_counter()
    filled = row.answer(model, task.request(seed=seed, max_tokens=max_tokens), task.truth)
    ms = (time.perf_counter() - began) * 1000
    text, syntax = (filled.candidates[0].text, filled.candidates[0].syntax) if filled.candidates else ("", "")
    refused = syntax_error(task, text)
    return Result(
        row=row.name,
        task=task.name,
        kind=task.kind,
        truth_tokens=len(model.tokenize(task.truth)),
        text=text,
        tokens=len(model.tokenize(text)),
        exact=text == task.truth,
        similarity=round(Levenshtein.normalized_similarity(text, task.truth), 4),
        syntax=syntax,
        clean=is_clean(task, text),
        passed=False if refused else text.strip() in task.right if task.right else None,
        reason=refused,
        steps=filled.steps,
        forwards=filled.forwards,
        ms=round(ms, 3),
    )


def _with_outcome(result: Result, test: _Testing) -> Result:
    # A signal just before a wait without an end would not be noticed until the test is over.
    while not test.done():
        wait([test], _PULSE_S)
    outcome = test.result()
    return replace(result, passed=outcome.passed, reason=outcome.reason) if outcome else result


def is_clean(task: EvalTask, text: str) -> bool | None:
    """Whether a fill adds no syntax problem to its file; None: unknown."""
    language = language_of(task.language)
    if language is None:
        return None
    found = Validator(task.prefix, task.suffix, language).verdict(text, Budget(_SYNTAX_MS))
    return found and found.is_clean


def syntax_error(task: EvalTask, text: str) -> str:
    """Python's error for a text that does not parse: a sandbox would take a hundred times as long to find it."""
    refused = diagnose(task.prefix + text + task.suffix) if task.check or task.asserts else None
    return f"SyntaxError: {refused.message}" if refused else ""


def run_tests(task: EvalTask, text: str, should_stop: Callable[[], bool] = lambda: False) -> SandboxResult | None:
    """Whether the task's tests pass with `text` in the gap; None where there are none. The result means nothing once
    `should_stop`, which ends the tests."""
    source = task.prefix + text + task.suffix
    if task.asserts:
        done = secrets.token_hex(8)
        ran = run_program(f"{source}\n{task.asserts}\nprint({done!r})\n", standard_limits())
        passed = ran.code == 0 and ran.output.rstrip().endswith(done)
        return SandboxResult(passed=passed, reason="" if passed else ran.output[-_TOLD:].strip())
    if task.check is None:
        return None
    return run_test(source, task.check.test, task.check.entry_point, should_stop=should_stop)
