"""`dg-lsp bench`: how fast a model runs here."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from engine.bench.families import SHAPES
from engine.core.errors import BadInput
from engine.core.exits import one_line_errors
from engine.core.names import BUNDLED, Device

if TYPE_CHECKING:
    from engine.bench.workload import Measured


@one_line_errors()
def bench(
    model: Annotated[str, typer.Option(metavar="NAME|PATH|HUB-ID", help="See `dg-lsp models`.")] = "bundled",
    shape: Annotated[
        str | None, typer.Option(metavar="|".join(SHAPES), help="Instead: random weights in this shape.")
    ] = None,
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda")] = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer figures, under a minute.")] = False,
    part: Annotated[list[str] | None, typer.Option(help="Only this part; several may be named.")] = None,
) -> None:
    """Measure fills, steps and keystrokes: ratios first, then medians; the last line is one JSON object."""
    # Imported here because `--help` needs none of it.
    from engine.bench.report import tables
    from engine.bench.run import PARTS, QUICK, Effort, run

    if unknown := set(part or ()) - set(PARTS):
        raise BadInput(f"There is no part {min(unknown)}: name one of {', '.join(PARTS)}.")
    if shape is not None and model != BUNDLED:
        raise BadInput("--shape makes a model of its own: leave out --model.")
    measured = _model(model, shape, cast("Device", device))
    progress = Console(stderr=True, highlight=False)
    effort = QUICK if quick else Effort()
    made = run(measured, effort, part or PARTS, on_part=lambda name: progress.print(f"measuring: {name}"))
    console = Console(highlight=False)
    for table in tables(made):
        console.print(table)
    measured = asdict(made)
    typer.echo(json.dumps({**measured.pop("about"), **measured}))


def _model(name: str, shape: str | None, device: Device) -> Measured:
    from engine.bench.families import random_model
    from engine.bench.workload import Measured
    from engine.loader.loading import load

    model = random_model(shape, device) if shape is not None else load(name, device).model
    if not isinstance(model, Measured):
        raise BadInput(f"{name} has no weights whose speed could be measured: name another model, or a --shape.")
    return model
