"""A benchmark as people and programs read it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from engine.bench.run import Benchmark
from engine.bench.timing import Figure
from engine.core.sizes import binary_bytes


def as_object(made: Benchmark) -> dict[str, Any]:
    """Everything as plain values."""
    return {
        **made.about,
        "ratios": [asdict(ratio) for ratio in made.ratios],
        "figures": [asdict(figure) for figure in made.figures],
        "memory": [asdict(each) for each in made.memory],
    }


def tables(made: Benchmark) -> list[Table]:
    """Ratios first."""
    about = made.about
    title = f"{about['model']} ({about['parameters']:,} parameters, {about['dtype']}) on {about['device']}"
    return [_ratios(title, made), *(_figures(part, made) for part in _parts(made)), *_memory(made)]


def _ratios(title: str, made: Benchmark) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    table.add_column("ratio")
    table.add_column("value", justify="right")
    table.add_column("aim", justify="right")
    for ratio in made.ratios:
        table.add_row(ratio.name, f"{ratio.value:.2f}", ratio.aim)
    return table


def _figures(part: str, made: Benchmark) -> Table:
    table = Table(title=part, box=SIMPLE_HEAD, title_justify="left")
    figures = [figure for figure in made.figures if figure.part == part]
    scaled = any(figure.at for figure in figures)
    batched = any(figure.batch > 1 for figure in figures)
    table.add_column("what")
    for name in [*(["at"] if scaled else []), *(["batch"] if batched else []), "median ms", "quartiles", "n"]:
        table.add_column(name, justify="right")
    for figure in figures:
        place = [*([str(figure.at)] if scaled else []), *([str(figure.batch)] if batched else [])]
        table.add_row(figure.name, *place, *_spread(figure))
    return table


def _spread(figure: Figure) -> tuple[str, str, str]:
    own = figure.spread
    return f"{own.median:.2f}", f"{own.low:.2f} to {own.high:.2f}", str(own.count)


def _memory(made: Benchmark) -> list[Table]:
    if not made.memory:
        return []
    table = Table(title="resident memory", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("process")
    table.add_column("held", justify="right")
    for each in made.memory:
        table.add_row(each.process, binary_bytes(each.nbytes))
    return [table]


def _parts(made: Benchmark) -> list[str]:
    return list(dict.fromkeys(figure.part for figure in made.figures))
