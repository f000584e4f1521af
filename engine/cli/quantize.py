"""`dg-lsp quantize`: a model in four bits a weight."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.core.exits import one_line_errors
from engine.core.sizes import decimal_bytes


@one_line_errors()
def quantize(
    model: Annotated[str, typer.Argument(metavar="NAME|PATH|HUB-ID", help="Its weights in bfloat16.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write it; one that was cut off is gone on with.")],
) -> None:
    """Make a model's weights four bits wide: int4 in groups of 32, in a directory that --model takes."""
    # Imported here because `--help` needs none of it.
    from rich.console import Console
    from rich.progress import Progress

    from engine.loader.catalog import find
    from engine.loader.checkpoint import read_checkpoint
    from engine.loader.quantizing import quantize as write

    checkpoint = find(model)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Quantizing", total=100)
        errors = write(checkpoint, out, lambda percent: progress.update(task, completed=percent))
    made = read_checkpoint(out, str(out))
    for kind, error in errors.items():
        typer.echo(f"{kind}: relative error {error:.3f}")
    typer.echo(f"{decimal_bytes(checkpoint.nbytes)} became {decimal_bytes(made.nbytes)}.")
    typer.echo(f"Ready: dg-lsp fill FILE --at LINE:COL --model {out}")
