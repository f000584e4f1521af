"""`python -m engine.eval.reserved`: fetch the reserved sources, or draw the holes in them anew."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.core.exits import one_line_errors
from engine.eval.reserved.holes import reserved_holes, write_holes
from engine.eval.reserved.packages import fetch as fetch_all

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


@app.command()
@one_line_errors()
def fetch() -> None:
    """Bring the reserved packages' sources into the user's cache."""
    typer.echo(f"The reserved sources are in {fetch_all()}.")


@app.command()
@one_line_errors()
def holes(seed: Annotated[int, typer.Option(min=0)] = 0) -> None:
    """Draw the reported and the development holes; the committed ones are those of seed 0."""
    write_holes(seed)
    typer.echo(f"{len(reserved_holes())} holes written.")


if __name__ == "__main__":
    app()
