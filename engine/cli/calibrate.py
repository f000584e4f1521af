"""`python -m engine.cli.calibrate`: measures a model's mean confidence in gaps of each width in your code, for the
length strategy `calibrated`. Widths near a gap's true width are left out: there the confidence has another reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import cast

import click

from engine.cli.options import device_option
from engine.common.errors import BadInput
from engine.common.exits import one_line_errors
from engine.common.names import Device
from engine.common.options import A_PATH
from engine.common.runtime_paths import data_dir
from engine.fill.executor import drive
from engine.fill.gap_opening import open_gap
from engine.fill.lengths.calibrated import first_sight
from engine.fill.loading import load
from engine.lab.eval.tasks import EvalTask, code_holes
from engine.models.base import Model
from engine.models.length_prior import fit_prior, prior_file, write_prior

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
TOO_NEAR = 4
"""Widths within so many tokens of the true width are not counted."""


@click.command(context_settings={"show_default": True})
@click.argument("folder", type=A_PATH, help="The code to cut gaps into.")
@click.option("--model", required=True, help="A model whose length strategy is calibrated.")
@click.option("--gaps", type=click.IntRange(5), default=60, help="How many gaps; more are slower and more exact.")
@device_option
@click.option("--seed", type=click.IntRange(0), default=0)
@one_line_errors()
def main(folder: Path, model: str, gaps: int, device: str, seed: int) -> None:
    """Fit a model's length prior to gaps in the code below FOLDER. It is used when the model is loaded next."""
    loaded = load(model, cast("Device", device)).model
    if loaded.info.length != "calibrated":
        raise BadInput(f"{model} finds widths by {loaded.info.length}; only `calibrated` needs a calibration.")
    usual = usual_confidence(loaded, code_holes(folder, None, gaps, seed))
    prior = fit_prior(usual)
    file = prior_file(data_dir(), loaded.info.name)
    write_prior(prior, file)
    for width, confidence in usual.items():
        click.echo(f"width {width:2}: {confidence:.3f} measured, {prior(width):.3f} fitted")
    click.echo(f"Kept in {file}.")


def usual_confidence(model: Model, tasks: Sequence[EvalTask]) -> dict[int, float]:
    """Mean confidence in the first step, by width in tokens, in gaps of other widths. Raises BadInput for too few
    gaps."""
    seen: defaultdict[int, list[float]] = defaultdict(list)
    for task in tasks:
        own = len(model.tokenize(task.truth))
        gap = open_gap(model, task.request())
        widths = [width for width in WIDTHS if abs(width - own) > TOO_NEAR and width <= gap.room]
        for width, confidence in zip(widths, drive(model, first_sight(gap, widths)), strict=True):
            seen[width].append(confidence)
    if len(seen) < 3:
        raise BadInput(f"{len(tasks)} gaps are too few: name a folder with more code.")
    return {width: fmean(values) for width, values in sorted(seen.items())}


if __name__ == "__main__":
    main()
