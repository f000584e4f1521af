"""`dg-lsp quantize`: converts a model to 4 bits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from engine.cli.options import device_option
from engine.common.errors import EngineError
from engine.common.exits import one_line_errors
from engine.common.names import Device
from engine.common.options import A_PATH
from engine.common.sizes import decimal_bytes

if TYPE_CHECKING:
    from engine.lab.eval.tasks import EvalTask

_MOST_S = 600.0
"""Time for filling gaps with the original; a large model fills fewer of them."""
_DEVELOPMENT = Path("development")


@click.command()
@click.argument("model", metavar="NAME|PATH|HUB-ID", help="A model in bfloat16, or a diffusion model's GGUF.")
@click.option(
    "--out",
    type=A_PATH,
    metavar="DIR",
    required=True,
    help="The output folder; an interrupted conversion is continued.",
)
@click.option(
    "--gaps",
    type=click.IntRange(0),
    default=20,
    help="Gaps to fill with both models, if memory allows; 0: none.",
)
@click.option(
    "--holes",
    type=A_PATH,
    metavar="DIR|development|reported",
    default=_DEVELOPMENT,
    help="The code of those gaps, as for `dg-lsp eval`.",
)
@device_option
@one_line_errors()
def quantize(model: str, out: Path, gaps: int, holes: Path, device: str) -> None:
    """Convert a model's weights to 4 bits (int4 in groups of 32), in a folder for --model."""
    # Imported here because `--help` needs none of it.
    from rich.console import Console
    from rich.progress import Progress

    from engine.cli.eval import chosen_tasks
    from engine.models.checkpoints.catalog import find
    from engine.models.checkpoints.checkpoint import read_checkpoint
    from engine.models.checkpoints.quantizing import quantize as write

    checkpoint = find(model)
    tasks, source = chosen_tasks(None, holes, None, gaps, 0) if gaps else ([], {})
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Quantizing", total=100)
        errors = write(checkpoint, out, lambda percent: progress.update(task, completed=percent))
    made = read_checkpoint(out, str(out))
    for kind, error in errors.items():
        click.echo(f"{kind}: relative error {error:.3f}")
    click.echo(f"{decimal_bytes(checkpoint.nbytes)} became {decimal_bytes(made.nbytes)}.")
    if tasks:
        click.echo(_compared(model, str(out), tasks, source["tasks"], device))
    click.echo(f"Ready: dg-lsp fill FILE --at LINE:COL --model {out}")


def _compared(before: str, after: str, tasks: Sequence[EvalTask], source: str, device: str) -> str:
    try:
        exact, filled = _exact(before, tasks, device, _MOST_S)
        kept, _ = _exact(after, tasks[:filled], device)
    except EngineError as error:
        return f"No gaps were filled, since both models can't run here: {error}"
    return f"Filled exactly, of {filled} {source}: {exact} before, {kept} after."


def _exact(name: str, tasks: Sequence[EvalTask], device: str, most_s: float = float("inf")) -> tuple[int, int]:
    """How many gaps a model fills exactly, and how many it filled within the time. Raises EngineError."""
    from engine.fill.loading import load
    from engine.lab.eval.rows import ADAPTIVE, chosen_rows

    model, (row,) = load(name, cast(Device, device)).model, chosen_rows([ADAPTIVE])
    ends, exact = time.monotonic() + most_s, 0
    for done, task in enumerate(tasks, start=1):
        found = row.answer(model, task.request(seed=0, max_tokens=96), task.truth).candidates
        exact += bool(found) and found[0].text == task.truth
        if time.monotonic() > ends:
            return exact, done
    return exact, len(tasks)
