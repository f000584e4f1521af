"""Prints a benchmark for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from engine.lab.bench.benchmark import Benchmark

_MARKS = {True: "met", False: "MISSED", None: ""}


def plain(made: Benchmark) -> dict[str, Any]:
    """A benchmark as plain values, for `--json`."""
    ratios = [{**asdict(each), "met": each.met} for each in made.ratios]
    fills = {"fills": list(map(asdict, made.fills))} if made.fills else {}
    return {**made.about, "ratios": ratios, "figures": list(map(asdict, made.figures)), **fills}


def tables(made: Benchmark) -> list[Table]:
    """A benchmark as tables. Ratios come last, as a benchmark is read for them; a missed aim is marked."""
    about = made.about
    title = f"{about['model']} ({about['parameters']:,} parameters, {about['dtype']}) on {about['device']}"
    ratios = [(ratio.name, f"{ratio.value:.2f}", ratio.aim, _MARKS[ratio.met]) for ratio in made.ratios]
    parts = dict.fromkeys(figure.part for figure in made.figures)
    return [
        *(_figures(part, made) for part in parts),
        _table(title, ("ratio", "value", "aim", ""), ratios),
    ]


def _figures(part: str, made: Benchmark) -> Table:
    figures = [figure for figure in made.figures if figure.part == part]
    at = ["at"] if any(figure.at for figure in figures) else []
    batch = ["batch"] if any(figure.batch > 1 for figure in figures) else []
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        place = [str(figure.at)] * len(at) + [str(figure.batch)] * len(batch)
        own = figure.spread
        rows.append((figure.name, *place, f"{own.median:.2f}", f"{own.low:.2f} to {own.high:.2f}", str(own.count)))
    return _table(part, ("what", *at, *batch, "median ms", "quartiles", "n"), rows)


def _table(title: str, columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for index, name in enumerate(columns):
        table.add_column(name, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    return table
