"""A benchmark as a picture. matplotlib comes with the extra `bench`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.bench.end_to_end import END_TO_END
from engine.bench.keystroke import KEYSTROKE
from engine.bench.run import Benchmark
from engine.bench.steps import BOUNDS, GRID
from engine.bench.timing import Figure
from engine.core.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOTTED = (END_TO_END, BOUNDS, KEYSTROKE, GRID)


def plot(made: Benchmark, folder: Path) -> list[Path]:
    """Write PNG and SVG into `folder`; returns their paths. Raises BadInput as `check_plotting` does."""
    check_plotting(folder, {figure.part for figure in made.figures})
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    by_part = {part: [figure for figure in made.figures if figure.part == part] for part in PLOTTED}
    parts = [part for part, figures in by_part.items() if figures]
    canvas, axes = pyplot.subplots(1, len(parts), figsize=(5 * len(parts), 4), squeeze=False, layout="constrained")
    for axis, part in zip(axes[0], parts, strict=True):
        if part == KEYSTROKE:
            _lines(axis, by_part[part], lambda figure: figure.name, "tokens of context")
        elif part == GRID:
            _lines(axis, by_part[part], lambda figure: f"{figure.name}, {figure.batch} at once", "tokens of canvas")
        else:
            _bars(axis, by_part[part])
        axis.set_title(part)
    canvas.suptitle(f"{made.about['model']} on {made.about['device']}, {made.about['date']}")
    paths = [folder / "benchmark.png", folder / "benchmark.svg"]
    for path in paths:
        canvas.savefig(path)
    pyplot.close(canvas)
    return paths


def check_plotting(folder: Path, parts: Collection[str]) -> None:
    """Make `folder`. Raises BadInput where it can't be had, none of the `parts` has a picture, or matplotlib is
    missing."""
    try:
        import matplotlib as _  # noqa: F401
    except ModuleNotFoundError:
        raise BadInput("Plots need matplotlib: install dg-lsp[bench].") from None
    if set(PLOTTED).isdisjoint(parts):
        raise BadInput(f"There is nothing to plot: measure at least one of {', '.join(PLOTTED)}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder} can't be written to ({error.strerror}): name another folder.") from None


def _bars(axis: Axes, figures: list[Figure]) -> None:
    spreads = [figure.spread for figure in figures]
    errors = [[each.median - each.low for each in spreads], [each.high - each.median for each in spreads]]
    bars: Any = axis.barh([figure.name for figure in figures], [each.median for each in spreads], xerr=errors)
    axis.bar_label(bars, fmt="%.1f", padding=4)
    axis.invert_yaxis()
    axis.margins(x=0.2)
    axis.set_xlabel("ms")


def _lines(axis: Axes, figures: list[Figure], name_of: Callable[[Figure], str], scale: str) -> None:
    for name in dict.fromkeys(map(name_of, figures)):
        held = [figure for figure in figures if name_of(figure) == name]
        at = [figure.at for figure in held]
        axis.plot(at, [figure.spread.median for figure in held], marker="o", label=name)
        axis.fill_between(at, [figure.spread.low for figure in held], [f.spread.high for f in held], alpha=0.2)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel(scale)
    axis.set_ylabel("ms")
    axis.legend()
