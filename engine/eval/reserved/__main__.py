"""`python -m engine.eval.reserved`: bring the reserved packages' sources into the user's cache."""

from __future__ import annotations

import typer

from engine.core.exits import one_line_errors
from engine.eval.reserved.packages import fetch

if __name__ == "__main__":
    with one_line_errors():
        typer.echo(f"The reserved sources are in {fetch()}.")
