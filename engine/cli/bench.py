"""`dg-lsp bench`: how fast a model runs here."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from contextlib import nullcontext
from itertools import islice
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from msgspec.structs import replace
from rich.console import Console

from engine.cli.options import MAX_SEED, device_option, json_option, model_option
from engine.common.errors import BadInput
from engine.common.exits import one_line_errors
from engine.common.names import BUNDLED, Device
from engine.common.options import A_PATH
from engine.lab.bench.families import SHAPES
from engine.lab.peer.client import NAME, peer_of

if TYPE_CHECKING:
    from engine.lab.bench.benchmark import CoderWork
    from engine.lab.bench.fills import CodeGaps
    from engine.lab.bench.workload import Forgetful
    from engine.lab.eval.tasks import EvalTask
    from engine.lab.peer.client import LlamaCpp
    from engine.models.base import Model

_OWN_GAPS = 2000
"""Gaps cut into dg-lsp's own code, few of them long."""


@click.command()
@model_option
@click.option(
    "--shape",
    metavar="|".join(SHAPES),
    help="Measure random weights in this shape; append -int4 or -nvfp4 for 4 bits.",
)
@device_option
@click.option("--quick", is_flag=True, help="Fewer measurements, in under a minute.")
@click.option("--part", multiple=True, help="Measure only this part; may be repeated.")
@click.option(
    "--beside", type=click.Choice([NAME]), help="With --part coder: measure this program with the same file, too."
)
@click.option(
    "--tasks", type=A_PATH, metavar="TASKS.jsonl[.gz]", help="With --part coder: gaps in the format of `dg-lsp eval`."
)
@click.option(
    "--seed", type=click.IntRange(0, MAX_SEED), default=0, help="With --part coder: the seed that draws gaps."
)
@json_option
@one_line_errors()
def bench(
    model: str,
    shape: str | None,
    device: str,
    quick: bool,
    part: tuple[str, ...],
    beside: str | None,
    tasks: Path | None,
    seed: int,
    json: bool,
) -> None:
    """Measure fills, steps and keystrokes: medians, then ratios with their targets."""
    # Imported here because `--help` needs none of it.
    from engine.lab.bench.benchmark import PARTS, QUICK, Effort, run
    from engine.lab.bench.coder import CODER
    from engine.lab.bench.fills import GAPS
    from engine.lab.bench.report import plain, tables

    if unknown := set(part) - {*PARTS, CODER}:
        raise BadInput(f"There is no part {min(unknown)}: use one of {', '.join((*PARTS, CODER))}.")
    if shape is not None and model != BUNDLED:
        raise BadInput("--shape makes its own model: leave out --model.")
    if shape is not None and (of_code := {GAPS, CODER} & {*part}):
        raise BadInput(f"A model made by --shape can't read code: leave out --part {min(of_code)!r}.")
    if CODER not in part and (beside or tasks):
        raise BadInput(f"--beside and --tasks need --part {CODER}: name it.")
    progress = Console(stderr=True, highlight=False)
    effort = QUICK if quick else Effort()
    chosen = part or [each for each in PARTS if shape is None or each != GAPS]
    with peer_of(model) if beside else nullcontext() as peer:
        measured = _model(model, shape, cast("Device", device), part)
        code = _code(measured) if GAPS in chosen else None
        work = _work(tasks, seed, effort.in_code, peer) if CODER in chosen else None
        made = run(measured, effort, chosen, lambda name: progress.print(f"measuring: {name}"), code, work)
    if json:
        click.echo(dumps(plain(made)))
        return
    console = Console(highlight=False)
    for table in tables(made):
        console.print(table)


def _model(name: str, shape: str | None, device: Device, parts: Collection[str]) -> Forgetful:
    from engine.fill.loading import load
    from engine.lab.bench.coder import CODER
    from engine.lab.bench.families import random_model
    from engine.lab.bench.workload import Forgetful, Measured

    model = random_model(shape, device) if shape is not None else load(name, device).model
    if not isinstance(model, Forgetful):
        raise BadInput(f"{name} has no weights to measure: name another model, or a --shape.")
    if {*parts} != {CODER} and not isinstance(model, Measured):
        raise BadInput(f"{name} has no canvas steps to measure: use --part {CODER}.")
    return model


def _work(path: Path | None, seed: int, count: int, peer: LlamaCpp | None) -> CoderWork:
    """Gaps from a file or from code, drawn by `seed`."""
    from engine.lab.bench.benchmark import CoderWork
    from engine.lab.bench.coder import coder_tasks
    from engine.lab.eval.tasks import read_tasks

    tasks, source = (read_tasks(path), path.name) if path else _code_tasks()
    drawn = [*islice(tasks, _OWN_GAPS)]
    random.Random(f"{seed}/coder").shuffle(drawn)
    return CoderWork(tasks=coder_tasks(drawn, count), source=f"{source}, seed {seed}", peer=peer)


def _code_tasks() -> tuple[Iterable[EvalTask], str]:
    """Gaps in the development packages if they are on this machine, else in dg-lsp's own code; and the source's
    name."""
    from engine.lab.eval.reserved.packages import development_gaps
    from engine.lab.eval.tasks import code_holes

    if tasks := development_gaps():
        return tasks, "development packages"
    source = "dg-lsp's own code (the reserved packages were never fetched)"
    return code_holes(Path(__file__).parents[1], "python", _OWN_GAPS, seed=0), source


def _code(model: Model) -> CodeGaps:
    from engine.common.request import FillRequest
    from engine.lab.bench.fills import CodeGaps
    from engine.lab.eval.rows import true_width

    tasks, source = _code_tasks()
    requests = (
        (FillRequest(prefix=task.prefix, suffix=task.suffix, language=task.language), task.truth) for task in tasks
    )
    return CodeGaps(
        source=source,
        requests=(replace(request, width=true_width(model, request, truth)) for request, truth in requests),
    )
