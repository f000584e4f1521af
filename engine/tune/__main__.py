"""`python -m engine.tune`: experiments with tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.core.exits import one_line_errors
from engine.core.runtime_paths import data_dir
from engine.tune.sudoku import TESTED, experiment, picture

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


@app.callback()
def main() -> None:
    """Experiments with tuning; `dg-lsp tune` learns a repository."""


@app.command()
@one_line_errors()
def sudoku(
    out: Annotated[Path | None, typer.Option(help="Where base and adapter go; the user's data by default.")] = None,
    base_steps: Annotated[int, typer.Option(min=1)] = 300,
    tune_steps: Annotated[int, typer.Option(min=1)] = 2400,
    puzzles: Annotated[int, typer.Option(min=1, help="That are played before and after.")] = TESTED,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    svg: Annotated[Path | None, typer.Option(help="Draw how many steps the puzzles took.")] = None,
) -> None:
    """Four by four: what a base that knows boards solves before and after it is tuned, and in how many steps."""
    folder = out or data_dir() / "tune" / f"sudoku-{seed}"
    before, after = experiment(folder, base_steps, tune_steps, typer.echo, seed, puzzles)
    if svg:
        svg.write_text(picture(before, after), encoding="utf-8")


if __name__ == "__main__":
    app()
