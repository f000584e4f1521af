"""`dg-lsp pull`: downloads a model; no other command does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.common.exits import one_line_errors
from engine.common.options import A_FILE
from engine.common.sizes import binary_bytes, decimal_bytes
from engine.models.checkpoints.released import known

if TYPE_CHECKING:
    from engine.models.checkpoints.coders import PublishedCoder

_LINE_S = 1.0
"""Interval of progress lines where there is no terminal."""


@click.command()
@click.argument("model", metavar="MODEL", help="coder-1.5b, coder-0.5b, or OWNER/MODEL[:q8_0] on the Hub.")
@click.option(
    "--from", "file", type=A_FILE, help="Use this file for coder-1.5b or coder-0.5b instead of downloading it."
)
@one_line_errors()
def pull(model: str, file: Path | None) -> None:
    """Download a model. After an interruption, run it again to continue."""
    from engine.models.checkpoints.catalog import coder_named

    coder = coder_named(model)
    if coder is not None:
        _pull_coder(coder, file)
    elif file is not None:
        raise click.UsageError(f"{file} can be used as it is: --model {file}")
    else:
        _pull_from_hub(model)
    if coder is not None:
        click.echo("Editors have it from the engine's next start on: `dg-lsp engine restart` is one.")
    click.echo(f"Ready: dg-lsp fill FILE --at LINE:COL --model {coder.name if coder else model}")


def _pull_coder(coder: PublishedCoder, file: Path | None) -> None:
    from engine.models.checkpoints.fetching import copy_in, fetch, needed_nbytes

    click.echo(f"{coder.name}: {decimal_bytes(needed_nbytes(coder))} to download. Licence: {coder.licence}.")
    with _progress(coder.name, coder.nbytes) as show:
        fetched = fetch(coder, show) if file is None else copy_in(coder, file, show)
    click.echo(f"{fetched.path}, from {fetched.source}; its SHA-256 is the publisher's.")


def _pull_from_hub(model: str) -> None:
    from engine.models.checkpoints.pull import plan_pull
    from engine.models.checkpoints.pull import pull as download

    plan = plan_pull(model)
    click.echo(
        f"{model}: {decimal_bytes(plan.download_nbytes)} to download, {decimal_bytes(plan.free_nbytes)} of disk free; "
        f"about {binary_bytes(plan.weights_nbytes)} of memory for its weights."
    )
    released = known(model)
    if released is not None:
        click.echo(f"On a GPU: {released.memory.summary()}.")
        click.echo(f"Licence: {released.licence}. Good for {released.good_for}.")
    with _progress(model, sum(each.nbytes for each in plan.gguf)) as show:
        download(plan, show)


@contextmanager
def _progress(model: str, total: int) -> Generator[Callable[[int], None]]:
    """Shows how many of `total` bytes are there: a bar on a terminal, else a line a second at most."""
    try:
        with _bar(total) if sys.stderr.isatty() else nullcontext(_lines(total)) as show:
            yield show
    except KeyboardInterrupt:
        where = "continues from here" if total else "keeps the files that are complete"
        click.echo(f"\nStopped. `dg-lsp pull {model}` {where}.", err=True)
        raise


@contextmanager
def _bar(total: int) -> Generator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not total) as progress:
        task = progress.add_task("", total=total)
        yield lambda nbytes: progress.update(task, completed=nbytes)


def _lines(total: int) -> Callable[[int], None]:
    began, start, last = time.monotonic(), -1, 0.0

    def show(nbytes: int) -> None:
        nonlocal start, last
        now = time.monotonic()
        start = nbytes if start < 0 else start
        if now - last < _LINE_S and nbytes < total:
            return
        last = now
        speed = (nbytes - start) / max(now - began, 1e-3)
        left = f", {(total - nbytes) / speed:.0f} s left" if speed else ""
        click.echo(f"{100 * nbytes // total}% of {decimal_bytes(total)}{left}", err=True)

    return show
