"""Fill every gap in every way, test the fills beside it, keep what came of it."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event

from engine.eval.measures import is_clean, refusal, similarity, verdict
from engine.eval.results import Result, Results
from engine.eval.rows import Row, request_of
from engine.eval.sandbox import Verdict
from engine.eval.tasks import Task
from engine.models.base import Model

_WAITING = 64
"""Fills that may wait for their test, so that memory stays bounded."""
_Testing = Future[Verdict | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Of a run."""

    seed: int = 0
    max_tokens: int = 96
    workers: int = max(1, (os.cpu_count() or 2) // 2)
    """Tests that run at the same time, beside the model."""


def evaluate(
    model: Model,
    tasks: Sequence[Task],
    rows: Sequence[Row],
    results: Results,
    settings: Settings,
    on_done: Callable[[], None] = lambda: None,
) -> None:
    """Add a result for each row and task that has none yet, calling `on_done` after each.

    All rows fill a task before the next one is begun, so a run that is cut off compares them fairly. An interrupt
    ends it at once: what is tested by then is added, tests that still run are ended.
    """
    pending: deque[tuple[Result, _Testing | None]] = deque()

    def collect(most: int) -> None:
        while pending and (len(pending) > most or _is_tested(pending[0][1])):
            results.add(_with_verdict(*pending.popleft()))
            on_done()

    with _tester(settings.workers) as begin:
        try:
            for task in tasks:
                tests: dict[str, _Testing] = {}
                for row in rows:
                    if (row.name, task.name) not in results:
                        result = _filled(model, row, task, settings)
                        if result.passed is None and result.text not in tests:
                            tests[result.text] = begin(task, result.text)
                        pending.append((result, tests.get(result.text)))
                        collect(_WAITING)
            collect(0)
        except KeyboardInterrupt:
            for result, test in pending:
                if _is_tested(test):
                    results.add(_with_verdict(result, test))
            raise


@contextmanager
def _tester(workers: int) -> Generator[Callable[[Task, str], _Testing]]:
    """Begins tests, which run beside the block, as many at a time; those that outlast it are ended."""
    over = Event()
    pool = ThreadPoolExecutor(workers)
    try:
        yield lambda task, text: pool.submit(verdict, task, text, should_stop=over.is_set)
    finally:
        over.set()
        pool.shutdown(cancel_futures=True)


def _filled(model: Model, row: Row, task: Task, settings: Settings) -> Result:
    """A result without the verdict of its tests, but for what is no Python at all."""
    request = request_of(task, settings.seed, settings.max_tokens)
    began = time.perf_counter()
    filled = row.fill(model, request, task.truth)
    ms = (time.perf_counter() - began) * 1000
    text, syntax = (filled.candidates[0].text, filled.candidates[0].syntax) if filled.candidates else ("", "")
    refused = refusal(task, text)
    return Result(
        row=row.name,
        task=task.name,
        kind=task.kind,
        truth_tokens=len(model.tokenize(task.truth)),
        text=text,
        tokens=len(model.tokenize(text)),
        exact=text == task.truth,
        similarity=round(similarity(text, task.truth), 4),
        syntax=syntax,
        clean=is_clean(task, text),
        passed=refused.passed if refused else None,
        reason=refused.reason if refused else "",
        steps=filled.steps,
        forwards=filled.forwards,
        ms=round(ms, 3),
    )


def _is_tested(test: _Testing | None) -> bool:
    return test is None or test.done()


def _with_verdict(result: Result, test: _Testing | None) -> Result:
    said = test.result() if test else None
    return replace(result, passed=said.passed, reason=said.reason) if said else result
