"""`dg-lsp tune`: tunes a model to a repository."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from engine.cli.options import device_option, model_option, seed_option
from engine.common.errors import BadInput
from engine.common.exits import one_line_errors, pausing
from engine.common.files import check_folder
from engine.common.names import Device
from engine.common.options import A_PATH, FiniteRange
from engine.common.processes import idle
from engine.common.sizes import binary_bytes
from engine.common.wording import counted
from engine.models.checkpoints.catalog import find
from engine.models.checkpoints.released import PRESETS
from engine.models.registry import family_named

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from engine.learn.tuning import Prepared, TuningResult
    from engine.models.checkpoints.directory import Checkpoint

_PAUSED = 130
_UNTRAINED = (
    "it is a coder, and there is no training for coders yet. `--model bundled` can be tuned, and so can "
    f"{', '.join(each.released.hub_id for each in PRESETS)} and the other diffusion models of `dg-lsp models`."
)


@click.command()
@click.argument("folder", type=A_PATH, help="The repository; `dg-lsp files` lists the files that are read.")
@click.option("--dry-run", is_flag=True, help="Print what would be read, the time and the memory; do not tune.")
@model_option
@device_option
@click.option("--minutes", type=FiniteRange(0.05), default=15.0, help="Longest training time.")
@click.option(
    "--gaps", type=click.IntRange(6), default=60, help="Gaps to fill before and after; more are more exact and slower."
)
@click.option(
    "--outside",
    type=click.IntRange(1),
    default=60,
    help="Gaps to fill in other code, to measure forgetting.",
)
@click.option("--anew", is_flag=True, help="Start over instead of continuing from the last adapter.")
@click.option("--idle/--no-idle", "idle_", default=True, help="Use only processor time that nothing else needs.")
@seed_option
@one_line_errors()
def tune(
    folder: Path,
    dry_run: bool,
    model: str,
    device: str,
    minutes: float,
    gaps: int,
    outside: int,
    anew: bool,
    idle_: bool,
    seed: int,
) -> None:
    """Tune a model to a repository: train a small adapter on this machine and measure its gain. Ctrl-C pauses; the same
    command continues."""
    # Check first what can be checked at once.
    check_folder(folder)
    checkpoint = find(model)
    untrained = not family_named(checkpoint.family).tunes
    if untrained and not dry_run:
        raise BadInput(f"{checkpoint.name} can't be tuned: {_UNTRAINED}")
    # Imported here because `--help` needs none of it.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    with console.status("Loading torch"):
        from engine.learn.tuning import TuningRequest, prepared
        from engine.learn.tuning import tune as run
        from engine.models.products import keep_few_programs

    if untrained:
        click.echo(_least(folder, checkpoint))
        return
    keep_few_programs()
    request = TuningRequest(
        folder=folder,
        model=model,
        device=cast(Device, device),
        minutes=minutes,
        gaps=gaps,
        outside=outside,
        seed=seed,
        anew=anew,
    )
    if idle_:
        idle()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        with console.status("") as waiting:
            ready = stack.enter_context(prepared(request, click.echo, waiting.update))
        if ready is None:
            click.echo("Nothing has changed since the adapter was trained: --anew trains it from scratch.")
            return
        click.echo(_plan(ready))
        if dry_run:
            return
        with (
            pausing() as should_pause,
            Progress(*columns, console=console, transient=True) as progress,
        ):
            result = run(ready, click.echo, lambda doing, often: _bar(progress, doing, often), should_pause)
        if result is None:
            click.echo("Paused: the same command continues.")
            raise click.exceptions.Exit(_PAUSED)
        _report(result)


def _bar(progress: Progress, doing: str, often: int) -> Callable[[], None]:
    task = progress.add_task(doing, total=often)
    return lambda: progress.advance(task)


def _plan(ready: Prepared) -> str:
    from engine.learn.learn import spent
    from engine.learn.measure import FITS, choosing_gaps

    plan, request = ready.plan, ready.request
    filled = 2 * (request.gaps + request.outside) + FITS * choosing_gaps(request.gaps)
    goes_on = " Training continues from the existing adapter." if ready.start else ""
    return (
        f"{counted(plan.steps, 'step')}, about {spent(plan.seconds)} of training on an idle machine, and "
        f"{binary_bytes(plan.nbytes)} of memory, {binary_bytes(plan.resident)} of it for the model and what runs it; "
        f"{binary_bytes(plan.available)} are free. {filled} gaps are filled to measure the gain."
        f"{goes_on} Nothing leaves this machine."
    )


def _least(folder: Path, checkpoint: Checkpoint) -> str:
    from engine.learn.learn import spent
    from engine.learn.tuning import PASSES
    from engine.learn.untrained import least

    takes = least(folder, checkpoint, click.echo)
    return (
        f"At least {spent(takes.seconds)} to learn from that {PASSES} times on this processor, and at least "
        f"{binary_bytes(takes.nbytes)} of memory for the weights; {binary_bytes(takes.available)} are free. But "
        f"{checkpoint.name} can't be tuned: {_UNTRAINED}"
    )


def _report(result: TuningResult) -> None:
    from rich.console import Console

    Console().print(_table(result))
    state, schedule = result.state, result.schedule
    click.echo(
        f"Held-out loss {state.first_loss:.3f} before, {state.best_loss:.3f} after {state.best_step} steps. A canvas "
        f"is done at {schedule.sure:.2f} sure, after {schedule.max_steps} steps at the most"
        + (
            f"; automatic suggestions are shown from {schedule.threshold:.2f} on."
            if schedule.threshold is not None
            else "."
        )
    )
    if result.gained:
        click.echo(f"The adapter is in {result.kept}.")
    elif result.kept:
        click.echo(f"The adapter gained nothing: it is saved in {result.kept} but disabled.")
    else:
        click.echo("The new adapter gained nothing: the previous one stays active.")


def _table(result: TuningResult) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for heading in ("gaps", "", "filled", "exact", "similar", "no problem", "silent", "passes", "median"):
        table.add_column(heading, justify="left" if heading in ("gaps", "") else "right", no_wrap=True)
    for name in result.before:
        for when, each in (("before", result.before[name]), ("after", result.after[name])):
            shares = (each.exact, each.similarity, each.clean, each.silent)
            told = ("-" if share is None else f"{share:.1%}" for share in shares)
            table.add_row(name, when, str(each.gaps), *told, f"{each.forwards:.1f}", f"{each.p50_ms:.0f} ms")
    return table
