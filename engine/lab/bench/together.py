"""Several runs of the part "coder" as one table, and as a picture: `python -m engine.lab.bench.together RUN.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from engine.common.errors import BadInput
from engine.common.options import A_PATH
from engine.lab.bench.coder import MOMENTS, CoderFill, coder_figures
from engine.lab.bench.report import tables
from engine.lab.bench.run import Benchmark
from engine.lab.bench.timing import Figure

_COLOURS = ("#2a9d4a", "#7d8590", "#b9bec6")
"""Of our fills, and of llama.cpp's by its two prompts."""
_LEFT, _ROW, _WIDE = 130, 20, 520


def together(runs: Sequence[Mapping[str, Any]]) -> list[Benchmark]:
    """One for each model, in the order of their first runs. Raises BadInput for a run that has no fills."""
    made: dict[str, Benchmark] = {}
    for run in runs:
        if "fills" not in run:
            raise BadInput("A run without the part coder was given: leave it out.")
        about = {name: said for name, said in run.items() if isinstance(said, str | int)}
        of_model = made.setdefault(str(run["model"]), Benchmark(about=about))
        of_model.fills += msgspec.convert(run["fills"], list[CoderFill])
    for each in made.values():
        each.figures, each.ratios = coder_figures(each.fills, int(each.about["parameters"]))
    return [*made.values()]


def picture(made: Sequence[Benchmark]) -> str:
    """Medians as bars, in SVG: a block a model, in it a group a moment."""
    longest = max(figure.spread.median for each in made for figure in each.figures)
    parts: list[str] = []
    top = 30
    for each in made:
        parts.append(f'<text x="20" y="{top}" font-weight="bold">{Path(str(each.about["model"])).stem}</text>')
        top += 12
        for moment in MOMENTS:
            own = [figure for figure in each.figures if figure.name.endswith(f", {moment}")]
            parts.append(f'<text x="20" y="{top + 15}">{moment}</text>')
            parts += [_bar(figure, top + _ROW * at, longest, _COLOURS[at]) for at, figure in enumerate(own)]
            top += _ROW * len(own) + 10
        top += 24
    legend = "Seconds of a fill, medians. Green: dg-lsp; grey: llama.cpp, prompt as ours; light: published prompt"
    wide = _LEFT + _WIDE + 80
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{top + 10}" font-family="sans-serif" '
        f'font-size="13"><rect width="{wide}" height="{top + 10}" fill="white"/>{"".join(parts)}'
        f'<text x="20" y="{top}">{legend}</text></svg>\n'
    )


def _bar(figure: Figure, top: int, longest: float, colour: str) -> str:
    width = max(1, round(_WIDE * figure.spread.median / longest))
    return (
        f'<rect x="{_LEFT}" y="{top + 2}" width="{width}" height="{_ROW - 4}" fill="{colour}"/>'
        f'<text x="{_LEFT + width + 6}" y="{top + 15}">{figure.spread.median / 1000:.2f}</text>'
    )


@click.command()
@click.argument("runs", type=A_PATH, nargs=-1, required=True)
@click.option("--svg", type=A_PATH, help="Write the picture here.")
def main(runs: Sequence[Path], svg: Path | None) -> None:
    """Put runs together that `dg-lsp bench --part coder --json` printed."""
    made = together([msgspec.json.decode(path.read_bytes()) for path in runs])
    console = Console(highlight=False)
    for each in made:
        for table in tables(each):
            console.print(table)
    if svg:
        svg.write_text(picture(made), encoding="utf-8")


if __name__ == "__main__":
    main()
