"""`python -m engine.tune`: experiments with tuning."""

from __future__ import annotations

from pathlib import Path

import click

from engine.core.exits import one_line_errors
from engine.core.options import A_PATH
from engine.core.runtime_paths import data_dir
from engine.tune.sudoku import TESTED, experiment, picture


@click.group(context_settings={"show_default": True})
def app() -> None:
    """Experiments with tuning; `dg-lsp tune` learns a repository."""


@app.command()
@click.option("--out", type=A_PATH, help="Where base and adapter go; the user's data by default.")
@click.option("--base-steps", type=click.IntRange(1), default=300)
@click.option("--tune-steps", type=click.IntRange(1), default=2400)
@click.option("--puzzles", type=click.IntRange(1), default=TESTED, help="That are played before and after.")
@click.option("--seed", type=click.IntRange(0), default=0)
@click.option("--svg", type=A_PATH, help="Draw how many steps the puzzles took.")
@one_line_errors()
def sudoku(out: Path | None, base_steps: int, tune_steps: int, puzzles: int, seed: int, svg: Path | None) -> None:
    """Four by four: what a base that knows boards solves before and after it is tuned, and in how many steps."""
    folder = out or data_dir() / "tune" / f"sudoku-{seed}"
    before, after = experiment(folder, base_steps, tune_steps, click.echo, seed, puzzles)
    if svg:
        svg.write_text(picture(before, after), encoding="utf-8")


if __name__ == "__main__":
    app()
