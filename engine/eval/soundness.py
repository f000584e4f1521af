"""Whether what is offered parses, and what validation and repair cost: gaps in real files, other people's parsers.

`python -m engine.eval.soundness FOLDER... --gaps 500` prints a table, its last line JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from engine.core.request import Filled, FillRequest
from engine.decoding.executor import drive
from engine.eval.code_holes import code_holes
from engine.eval.erring import erring
from engine.eval.parsers import Parsers, Parses
from engine.eval.tasks import Task
from engine.infill.pipeline import Parts, infill
from engine.models.base import Model

WAYS = {
    "unchecked": Parts(repair=False),
    "validated": Parts(renoise=False),
    "repaired": Parts(),
}
"""What takes part, by name."""
ORACLE = "oracle"
_MAX_TOKENS = 110
"""Of an answer; longer truths are left out, for no model could give them."""
_LARGEST_FILE = 40_000
"""Characters; the whole file is parsed again for each suggestion."""
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one gap."""

    task: str
    language: str
    model: str
    way: str
    text: str | None
    """The first suggestion; None: there is none."""
    right: bool
    """Whether it is the truth."""
    parses: bool | None
    """What the independent parser says of the file with it; None: there is no such parser."""
    unfinished: bool
    """Whether that parser refuses the file with an empty gap, too."""
    forwards: int
    cpu_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of the outcomes of one way with one model."""

    model: str
    way: str
    gaps: int
    offered: int
    exact: int
    kept: float | None
    """Of the gaps that are filled rightly unchecked: the share that is filled rightly this way."""
    judged: int
    """Suggestions that an independent parser saw."""
    refused: int
    """Those it refused."""
    broke: int
    """Those it refused although it takes the file with an empty gap."""
    forwards: float
    cpu_ms: float


Models = Callable[[Task], Iterator[tuple[str, Model]]]


def outcomes(tasks: Sequence[Task], models: Models, ways: Sequence[str], parsers: Parsers) -> Iterator[Outcome]:
    """Fill each gap in each way with each of its models. Huge files are left out, and what its own language's parser
    refuses."""
    for task in tasks:
        whole = task.prefix + task.truth + task.suffix
        if len(whole) > _LARGEST_FILE:
            continue
        parses = parsers.of(task.language, whole)
        if parses is None and task.language in ("python", "javascript"):
            continue
        unfinished = parses is not None and not parses(task.prefix + task.suffix)
        for name, model in models(task):
            if len(model.tokenize(task.truth)) <= _MAX_TOKENS:
                for way in ways:
                    yield _outcome(task, name, model, way, parses, unfinished=unfinished)


def figures(found: Sequence[Outcome]) -> list[Figures]:
    """By model and way."""
    right = {(each.model, each.task) for each in found if each.way == "unchecked" and each.right}
    groups = dict.fromkeys((each.model, each.way) for each in found)
    return [_figures([each for each in found if (each.model, each.way) == group], right) for group in groups]


def _outcome(task: Task, name: str, model: Model, way: str, parses: Parses | None, *, unfinished: bool) -> Outcome:
    request = FillRequest(prefix=task.prefix, suffix=task.suffix, language=task.language, max_tokens=_MAX_TOKENS + 10)
    began = time.process_time()
    filled: Filled = drive(model, infill(model, request, parts=WAYS[way]))
    cpu_ms = (time.process_time() - began) * 1000
    text = filled.candidates[0].text if filled.candidates else None
    return Outcome(
        task=task.name,
        language=task.language,
        model=name,
        way=way,
        text=text,
        right=text == task.truth,
        parses=parses(task.prefix + text + task.suffix) if parses and text is not None else None,
        unfinished=unfinished,
        forwards=filled.forwards,
        cpu_ms=cpu_ms,
    )


def _figures(group: Sequence[Outcome], right: set[tuple[str, str]]) -> Figures:
    were_right = [each for each in group if (each.model, each.task) in right]
    judged = [each for each in group if each.parses is not None]
    return Figures(
        model=group[0].model,
        way=group[0].way,
        gaps=len(group),
        offered=sum(each.text is not None for each in group),
        exact=sum(each.right for each in group),
        kept=sum(each.right for each in were_right) / len(were_right) if were_right else None,
        judged=len(judged),
        refused=sum(not each.parses for each in judged),
        broke=sum(not each.parses and not each.unfinished for each in judged),
        forwards=round(sum(each.forwards for each in group) / len(group), 2),
        cpu_ms=round(sum(each.cpu_ms for each in group) / len(group), 1),
    )


def _table(rows: Sequence[Figures]) -> Table:
    table = Table("model", "way", "gaps", "offered", "exact", "right ones kept", "parser saw", "refused", "broke")
    table.add_column("forwards")
    table.add_column("CPU ms")
    for row in rows:
        kept = "" if row.kept is None else f"{row.kept:.1%}"
        counts = (row.gaps, row.offered, row.exact, kept, row.judged, row.refused, row.broke, row.forwards, row.cpu_ms)
        table.add_row(row.model, row.way, *map(str, counts))
    return table


def _models(name: str, seed: int) -> Models:
    if name == ORACLE:
        return lambda task: erring(task, seed)
    from engine.loader.loading import load

    model = load(name).model
    return lambda task: iter([(name, model)])


def _measure(
    folders: Annotated[list[Path], typer.Argument(help="Code; each folder gives its share of gaps.")],
    gaps: Annotated[int, typer.Option(min=1)] = 500,
    model: Annotated[str, typer.Option(help=f"{ORACLE} (knows the answers and errs), or a model's name.")] = ORACLE,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    show: Annotated[bool, typer.Option("--show", help="Print refused suggestions.")] = False,
) -> None:
    """Measure whether what is offered parses."""
    # Some are left out later.
    share = -(-gaps * 5 // (4 * len(folders)))
    tasks = [task for folder in folders for task in code_holes(folder, None, share, seed)]
    found: list[Outcome] = []
    # Interrupted, it tells what it has.
    with Parsers() as parsers, suppress(KeyboardInterrupt):
        for each in outcomes(tasks, _models(model, seed), list(WAYS), parsers):
            found.append(each)
    for each in [each for each in found if show and each.parses is False and each.way != "unchecked"][:_SHOWN]:
        typer.echo(f"{each.way} {each.model} {each.task}: {each.text!r}")
    rows = figures(found)
    Console(width=140).print(_table(rows))
    languages = sorted({each.language for each in found})
    typer.echo(json.dumps({"languages": languages, "rows": [asdict(row) for row in rows]}))


if __name__ == "__main__":
    typer.run(_measure)
