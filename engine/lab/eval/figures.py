"""The figures of a run by row, also split by the length of the truth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from engine.common.percentiles import percentile
from engine.lab.eval.results import Result

LENGTHS = {"1-4": 4, "5-8": 8, "9-16": 16, "17-32": 32, "33+": math.inf}
"""Classes by the most tokens of the truth."""
_INTERVAL = 1.96
"""Half a 95% interval in standard deviations."""
ResultRows = Mapping[str, Sequence[Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of some results: shares in [0, 1], None where nothing was measured."""

    row: str
    gaps: int
    tested: int
    """Number of tasks with tests that can be run."""
    passed: float | None
    """Pass@1: the share of tested tasks whose one answer passes."""
    exact: float | None
    """Share of answers that are the truth to the letter."""
    similarity: float | None
    clean: float | None
    """Share of answers without a new syntax problem, where that could be judged."""
    silent: float | None
    width_error: float | None
    """Mean difference in tokens between answer and truth."""
    forwards: float | None
    tokens: float | None
    """Means by fill: tokens of the answer, and forward passes."""
    p50_ms: float | None
    p95_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """A row compared with the first one, on tasks that both have filled. A fill is right if it passes the tests;
    without tests, if it is exact."""

    row: str
    beside: str
    tasks: int
    gained: int
    """Tasks that only this row has right."""
    lost: int
    """Tasks that only the first row has right."""
    difference: float
    """Difference of the shares that are right."""
    half_interval: float
    """Half a 95% interval of it."""


def paired(by_row: ResultRows) -> list[Paired]:
    """Each further row compared with the first one."""
    named = {
        row: {each.task: each.exact if each.passed is None else each.passed for each in results}
        for row, results in by_row.items()
    }
    (first, theirs), *others = named.items()
    return [_paired(row, first, [(own[task], theirs[task]) for task in own if task in theirs]) for row, own in others]


def _paired(row: str, beside: str, right: Sequence[tuple[bool, bool]]) -> Paired:
    gained, lost = right.count((True, False)), right.count((False, True))
    tasks = max(1, len(right))
    spread = math.sqrt(max(0.0, gained + lost - (gained - lost) ** 2 / tasks)) / tasks
    return Paired(
        row=row,
        beside=beside,
        tasks=len(right),
        gained=gained,
        lost=lost,
        difference=round((gained - lost) / tasks, 4),
        half_interval=round(_INTERVAL * spread, 4),
    )


def figures(row: str, results: Sequence[Result]) -> Figures:
    tested = [each.passed for each in results if each.passed is not None]
    times = [each.ms for each in results]
    return Figures(
        row=row,
        gaps=len(results),
        tested=len(tested),
        passed=_mean(tested),
        exact=_mean([each.exact for each in results]),
        similarity=_mean([each.similarity for each in results]),
        clean=_mean([each.clean for each in results if each.clean is not None]),
        silent=_mean([not each.text for each in results]),
        width_error=_mean([abs(each.tokens - each.truth_tokens) for each in results]),
        forwards=_mean([each.forwards for each in results]),
        tokens=_mean([each.tokens for each in results]),
        p50_ms=percentile(times, 50, digits=1),
        p95_ms=percentile(times, 95, digits=1),
    )


def report(about: dict[str, Any], by_row: ResultRows) -> dict[str, Any]:
    """The figures as plain values, for `--json`."""

    def plain(part: ResultRows) -> list[dict[str, Any]]:
        return [asdict(figures(row, results)) for row, results in part.items()]

    return {
        **about,
        "rows": plain(by_row),
        "paired": [asdict(each) for each in paired(by_row)],
        "lengths": {name: plain(part) for name, part in _by_length(by_row).items()},
        "kinds": {name: plain(part) for name, part in _by_kind(by_row).items()},
    }


def tables(title: str, by_row: ResultRows) -> list[Table]:
    """The figures as tables for people: quality, cost, and quality by length and kind."""
    good = table_of(title, "gaps", "pass@1", "exact", "similar", "no problem", "silent")
    cost = table_of("by fill", "tokens off", "tokens", "forwards", "p50 ms", "p95 ms")
    for row, results in by_row.items():
        own = figures(row, results)
        shares = (_share(own.passed, own.tested), _share(own.exact, own.gaps), _share(own.similarity))
        good.add_row(row, str(own.gaps), *shares, _share(own.clean), _share(own.silent))
        means = (own.width_error, own.tokens, own.forwards, own.p50_ms, own.p95_ms)
        cost.add_row(row, *("-" if mean is None else f"{mean:.1f}" for mean in means))
    tested = any(each.passed is not None for results in by_row.values() for each in results)
    lengths = {name: part for name, part in _by_length(by_row).items() if next(iter(part.values()), ())}
    split = [_split(f"{'pass@1' if tested else 'exact'} by tokens of the truth", by_row, lengths, tested)]
    kinds = _by_kind(by_row)
    split += [_split("by kind of gap", by_row, kinds, tested)] if len(kinds) > 1 else []
    return [good, cost, *_pairs(by_row), *split]


def _pairs(by_row: ResultRows) -> Iterator[Table]:
    found = paired(by_row)
    if found:
        table = table_of(f"beside {found[0].beside}", "tasks", "gained", "lost", "points")
        for each in found:
            points = f"{100 * each.difference:+.1f} ±{100 * each.half_interval:.1f}"
            table.add_row(each.row, str(each.tasks), str(each.gained), str(each.lost), points)
        yield table


def _split(title: str, by_row: ResultRows, parts: Mapping[str, ResultRows], tested: bool) -> Table:
    """Pass@1 (exact match without tests) by class; the title of a class has its number of gaps."""
    table = table_of(title, *(f"{name} ({len(next(iter(part.values())))})" for name, part in parts.items()))
    for row in by_row:
        own = [figures(row, part[row]) for part in parts.values()]
        table.add_row(row, *(_share(each.passed if tested else each.exact) for each in own))
    return table


def table_of(title: str, *columns: str) -> Table:
    """An empty table of rows by name, with these columns of figures."""
    made = Table(title=Text(title), box=SIMPLE_HEAD, title_justify="left")
    made.add_column("row", no_wrap=True)
    for name in columns:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def _by_length(by_row: ResultRows) -> dict[str, ResultRows]:
    def length(result: Result) -> str:
        return next(name for name, most in LENGTHS.items() if result.truth_tokens <= most)

    return {name: _part(by_row, length, name) for name in LENGTHS}


def _by_kind(by_row: ResultRows) -> dict[str, ResultRows]:
    kinds = sorted({each.kind for results in by_row.values() for each in results})
    return {kind: _part(by_row, lambda each: each.kind, kind) for kind in kinds}


def _part(by_row: ResultRows, part_of: Callable[[Result], str], name: str) -> ResultRows:
    return {row: [each for each in results if part_of(each) == name] for row, results in by_row.items()}


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 4) if values else None


def _share(value: float | None, count: int = 0) -> str:
    """A share in percent; with `count`, with half its 95% interval."""
    if value is None:
        return "-"
    spread = f" ±{100 * _INTERVAL * math.sqrt(value * (1 - value) / count):.1f}" if count else ""
    return f"{100 * value:.1f}{spread}"
