"""Does every rewrite in every way, tests the results, and sums up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from engine.common.percentiles import percentile
from engine.fill.answering import answering
from engine.fill.executor import drive
from engine.fill.rewriting.conversation import answered, conversation
from engine.lab.eval.figures import table_of
from engine.lab.eval.rewrites.rewrite_tasks import RewriteTask
from engine.lab.eval.rewrites.tests_of import checked
from engine.lab.peer.client import NAME, Beside
from engine.models.base import Model

ROW = "dg-lsp"
_LONG = "long"
"""The kind of rewrites that change little of a long selection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What takes the place of a task's selection; `text` is empty where nothing is offered."""

    text: str
    ms: float
    forwards: int
    outside: int = 0
    """Characters outside the selection that the answer changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteResult:
    row: str
    task: str
    language: str
    right: bool
    reason: str
    """Why it is not right; empty where it is."""
    silent: bool
    """Whether nothing is offered."""
    outside: int
    ms: float
    forwards: int
    text: str


_ROOM = 512
"""Most tokens of an answer, beside two for each character of the selection."""
Rewriter = Callable[[RewriteTask], Rewritten]


def by_model(model: Model, task: RewriteTask) -> Rewritten:
    """A rewrite by a model, as the editor's command does it, in this process."""
    began = time.perf_counter()
    filled = drive(model, answering(model, task.request()))
    best = filled.candidates[0] if filled.candidates else None
    return Rewritten(
        text=best.text if best else "",
        ms=(time.perf_counter() - began) * 1000,
        forwards=filled.forwards,
        outside=best.swallowed if best else 0,
    )


def by_peer(beside: Beside, task: RewriteTask) -> Rewritten:
    """A rewrite by llama.cpp's chat with the same messages. Its answer is read in the same way, but there is no second
    try."""
    request = task.request()
    talk = conversation(request)
    said = beside.peer.chat(talk.messages, max_tokens=_ROOM + 2 * len(task.old))
    code = said.text.partition("```")[2].partition("\n")[2] if "```" in said.text else said.text
    return Rewritten(text=answered(request, code, talk.closing) or "", ms=said.ms, forwards=said.tokens)


def evaluate(
    rewriters: dict[str, Rewriter], tasks: Sequence[RewriteTask], on_done: Callable[[], None] = lambda: None
) -> list[RewriteResult]:
    """Do each task in each way, the ways in turn, so that other work on the machine slows all of them."""
    results: list[RewriteResult] = []
    for task in tasks:
        for row, rewrite in rewriters.items():
            results.append(_result(row, task, rewrite(task)))
            on_done()
    return results


def _result(row: str, task: RewriteTask, made: Rewritten) -> RewriteResult:
    verdict = checked(task, made.text) if made.text else None
    return RewriteResult(
        row=row,
        task=task.name,
        language=task.language,
        right=bool(verdict and verdict.passed),
        reason="nothing is offered" if verdict is None else "" if verdict.passed else verdict.reason,
        silent=verdict is None,
        outside=made.outside,
        ms=round(made.ms, 1),
        forwards=made.forwards,
        text=made.text,
    )


def figures(results: Sequence[RewriteResult]) -> dict[str, Any]:
    """The figures of one row."""
    return {
        "tasks": len(results),
        "right": sum(each.right for each in results),
        "silent": sum(each.silent for each in results),
        "outside": sum(each.outside for each in results),
        "p50_ms": percentile([each.ms for each in results], 50, digits=1),
        "p95_ms": percentile([each.ms for each in results], 95, digits=1),
        "forwards": round(sum(each.forwards for each in results) / max(1, len(results)), 1),
    }


def report(about: dict[str, Any], results: Sequence[RewriteResult]) -> dict[str, Any]:
    """The results as plain values."""
    rows = {row: figures([each for each in results if each.row == row]) for row in _rows(results)}
    return {**about, "rows": rows, "time_ratio": time_ratios(results), "results": [asdict(each) for each in results]}


def time_ratios(results: Sequence[RewriteResult]) -> dict[str, float | None]:
    """Our time by llama.cpp's, the median over all tasks and over long selections; None where there is none."""
    by_row = {row: {each.task: each for each in results if each.row == row} for row in _rows(results)}
    ours, peer = by_row.get(ROW, {}), by_row.get(NAME, {})
    pairs = [(each, peer[task]) for task, each in ours.items() if task in peer and peer[task].ms > 0]
    long = [pair for pair in pairs if pair[0].task.partition("/")[2].startswith(_LONG)]
    return {
        "all": percentile([our.ms / other.ms for our, other in pairs], 50, digits=2),
        "long": percentile([our.ms / other.ms for our, other in long], 50, digits=2),
    }


def table(title: str, results: Sequence[RewriteResult]) -> Table:
    """The figures as a table for people."""
    languages = sorted({each.language for each in results})
    made = table_of(title, "right", *languages, "silent", "changed outside", "p50 ms", "p95 ms", "passes")
    ratios = time_ratios(results)
    if ratios["all"] is not None:
        made.caption = f"time by {NAME}'s, median: {ratios['all']}; long selections: {ratios['long']}"
    for row in _rows(results):
        own = [each for each in results if each.row == row]
        said = figures(own)
        by_language = [[each for each in own if each.language == language] for language in languages]
        made.add_row(
            row,
            f"{said['right'] / len(own):.1%}",
            *(f"{sum(each.right for each in part)} of {len(part)}" for part in by_language),
            *(str(said[name]) for name in ("silent", "outside", "p50_ms", "p95_ms", "forwards")),
        )
    return made


def _rows(results: Sequence[RewriteResult]) -> list[str]:
    return list(dict.fromkeys(each.row for each in results))
