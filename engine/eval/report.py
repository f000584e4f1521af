"""What a run says: figures by row, and the same split by how long the truth is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from engine.core.percentiles import percentile
from engine.eval.results import Result

LENGTHS = ((1, 4), (5, 8), (9, 16), (17, 32), (33, None))
"""Tokens of the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of some results. Shares in [0, 1]; None where nothing was measured."""

    row: str
    gaps: int
    tested: int
    """Those that have tests which can be run."""
    passed: float | None
    """Pass@1: the one answer passes the tests, among those tested."""
    exact: float | None
    """The very text of the truth."""
    similarity: float | None
    clean: float | None
    """No new syntax problem, among those that could be judged."""
    silent: float | None
    """No answer."""
    width_error: float | None
    """Mean distance of the answer's tokens from the truth's."""
    forwards: float | None
    tokens: float | None
    """Both by fill."""
    p50_ms: float | None
    p95_ms: float | None


def figures(row: str, results: Sequence[Result]) -> Figures:
    """The figures of one row."""
    judged = [each.clean for each in results if each.clean is not None]
    tested = [each.passed for each in results if each.passed is not None]
    return Figures(
        row=row,
        gaps=len(results),
        tested=len(tested),
        passed=_mean(tested),
        exact=_mean([each.exact for each in results]),
        similarity=_mean([each.similarity for each in results]),
        clean=_mean(judged),
        silent=_mean([not each.text for each in results]),
        width_error=_mean([abs(each.tokens - each.truth_tokens) for each in results]),
        forwards=_mean([each.forwards for each in results]),
        tokens=_mean([each.tokens for each in results]),
        p50_ms=percentile([round(each.ms, 1) for each in results], 50),
        p95_ms=percentile([round(each.ms, 1) for each in results], 95),
    )


def report(about: dict[str, Any], by_row: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Everything as plain values, for `--json`."""
    return {
        **about,
        "rows": [asdict(figures(row, results)) for row, results in by_row.items()],
        "lengths": {
            _span(low, high): [asdict(figures(row, _between(results, low, high))) for row, results in by_row.items()]
            for low, high in LENGTHS
        },
        "kinds": {
            kind: [asdict(figures(row, _of_kind(results, kind))) for row, results in by_row.items()]
            for kind in _kinds(by_row)
        },
    }


def tables(title: str, by_row: Mapping[str, Sequence[Result]]) -> list[Table]:
    """The summary for people: how good, at what cost, and where."""
    good = _table(title, "gaps", "pass@1", "exact", "similar", "no problem", "silent")
    cost = _table("by fill", "tokens off", "tokens", "forwards", "p50 ms", "p95 ms")
    for row, results in by_row.items():
        own = figures(row, results)
        shares = (_share(own.passed, own.tested), _share(own.exact, own.gaps), _share(own.similarity))
        good.add_row(row, str(own.gaps), *shares, _share(own.clean), _share(own.silent))
        means = (own.width_error, own.tokens, own.forwards, own.p50_ms, own.p95_ms)
        cost.add_row(row, *map(_number, means))
    return [good, cost, *_split_tables(by_row)]


def _table(title: str, *columns: str) -> Table:
    made = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    made.add_column("row", no_wrap=True)
    for name in columns:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def _split_tables(by_row: Mapping[str, Sequence[Result]]) -> list[Table]:
    """Pass@1 (exact match where there are no tests) by the length of the truth and by the kind of gap."""
    tested = any(each.passed is not None for results in by_row.values() for each in results)
    said: Callable[[Figures], float | None] = (lambda own: own.passed) if tested else (lambda own: own.exact)
    some = next(iter(by_row.values()), [])
    spans = {f"{_span(*ends)} ({len(held)})": ends for ends in LENGTHS if (held := _between(some, *ends))}
    lengths = _table(f"{'pass@1' if tested else 'exact'} by tokens of the truth", *spans)
    kinds = {f"{kind} ({len(_of_kind(some, kind))})": kind for kind in _kinds(by_row)}
    by_kind = _table("by kind of gap", *kinds)
    for row, results in by_row.items():
        lengths.add_row(row, *(_share(said(figures(row, _between(results, *ends)))) for ends in spans.values()))
        by_kind.add_row(row, *(_share(said(figures(row, _of_kind(results, kind)))) for kind in kinds.values()))
    return [lengths, by_kind] if len(kinds) > 1 else [lengths]


def _between(results: Sequence[Result], low: int, high: int | None) -> list[Result]:
    return [each for each in results if low <= max(1, each.truth_tokens) <= (high or math.inf)]


def _of_kind(results: Sequence[Result], kind: str) -> list[Result]:
    return [each for each in results if each.kind == kind]


def _kinds(by_row: Mapping[str, Sequence[Result]]) -> list[str]:
    return sorted({each.kind for results in by_row.values() for each in results})


def _span(low: int, high: int | None) -> str:
    return f"{low}-{high}" if high else f"{low}+"


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 4) if values else None


def _share(value: float | None, count: int = 0) -> str:
    """With `count`, half the width of the 95% interval beside it."""
    if value is None:
        return "-"
    spread = f" ±{196 * math.sqrt(value * (1 - value) / count):.1f}" if count else ""
    return f"{100 * value:.1f}{spread}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
