"""`dg-lsp bench`: how fast a model runs here."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from msgspec.structs import replace
from rich.console import Console

from engine.cli.options import device_option, json_option, model_option
from engine.common.errors import BadInput
from engine.common.exits import one_line_errors
from engine.common.names import BUNDLED, Device
from engine.lab.bench.families import SHAPES

if TYPE_CHECKING:
    from engine.lab.bench.gaps import CodeGaps
    from engine.lab.bench.workload import Measured

_OWN_GAPS = 2000
"""Cut into our own code: few of them are long."""


@click.command()
@model_option
@click.option(
    "--shape",
    metavar="|".join(SHAPES),
    help="Instead: random weights in this shape, with -int4 or -nvfp4 behind it in 4 bit.",
)
@device_option
@click.option("--quick", is_flag=True, help="Fewer figures, under a minute.")
@click.option("--part", multiple=True, help="Only this part; several may be named.")
@json_option
@one_line_errors()
def bench(model: str, shape: str | None, device: str, quick: bool, part: tuple[str, ...], json: bool) -> None:
    """Measure fills, steps and keystrokes: medians, and at the end ratios beside what they should be."""
    # Imported here because `--help` needs none of it.
    from engine.lab.bench.gaps import GAPS
    from engine.lab.bench.report import tables
    from engine.lab.bench.run import PARTS, QUICK, Effort, run

    if unknown := set(part) - set(PARTS):
        raise BadInput(f"There is no part {min(unknown)}: name one of {', '.join(PARTS)}.")
    if shape is not None and model != BUNDLED:
        raise BadInput("--shape makes a model of its own: leave out --model.")
    if shape is not None and GAPS in part:
        raise BadInput(f"A model that --shape makes can read no code: leave out --part {GAPS!r}.")
    measured = _model(model, shape, cast("Device", device))
    progress = Console(stderr=True, highlight=False)
    effort = QUICK if quick else Effort()
    chosen = part or [each for each in PARTS if shape is None or each != GAPS]
    code = _code(measured) if GAPS in chosen else None
    made = run(measured, effort, chosen, lambda name: progress.print(f"measuring: {name}"), code)
    if json:
        ratios = [{**asdict(each), "met": each.met} for each in made.ratios]
        click.echo(dumps({**made.about, "ratios": ratios, "figures": list(map(asdict, made.figures))}))
        return
    console = Console(highlight=False)
    for table in tables(made):
        console.print(table)


def _model(name: str, shape: str | None, device: Device) -> Measured:
    from engine.fill.loading import load
    from engine.lab.bench.families import random_model
    from engine.lab.bench.workload import Measured

    model = random_model(shape, device) if shape is not None else load(name, device).model
    if not isinstance(model, Measured):
        raise BadInput(f"{name} has no weights whose speed could be measured: name another model, or a --shape.")
    return model


def _code(model: Measured) -> CodeGaps:
    """Gaps in code that settings are chosen on, where that is on this machine already, else in our own."""
    from engine.common.request import FillRequest
    from engine.lab.bench.gaps import CodeGaps
    from engine.lab.eval.reserved.packages import development_gaps
    from engine.lab.eval.rows import true_width
    from engine.lab.eval.tasks import code_holes

    tasks = development_gaps()
    source = "development packages" if tasks else "dg-lsp's own code (the reserved packages were never fetched)"
    tasks = tasks or code_holes(Path(__file__).parents[1], "python", _OWN_GAPS, seed=0)
    requests = (
        (FillRequest(prefix=task.prefix, suffix=task.suffix, language=task.language), task.truth) for task in tasks
    )
    return CodeGaps(
        source=source,
        requests=(replace(request, width=true_width(model, request, truth)) for request, truth in requests),
    )
