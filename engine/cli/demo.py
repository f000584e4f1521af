"""`make demo`: shows how the bundled model fills three gaps in real code."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from engine.cli.preview import figures, preview
from engine.cli.watch import Watch
from engine.common.client import OnDraft
from engine.common.exits import escape_unencodable, one_line_errors
from engine.common.marked import gap_at_markers
from engine.common.names import BUNDLED
from engine.common.request import Filled, FillRequest
from engine.models.checkpoints.catalog import find

_SETTLING = "Each canvas starts as noise; the text on both sides stays fixed while the tokens between them settle."
_CHECKING = "The answer grows from left to right: what is drafted is shown pale until the model has checked it."


class DemoExample(NamedTuple):
    title: str
    language: str
    text: str


_EXAMPLE = re.compile(r"^## ([^\n]+)\n\n```(\w+)\n(.*?)```$", re.DOTALL | re.MULTILINE)
EXAMPLES = tuple(map(DemoExample._make, _EXAMPLE.findall(Path(__file__).with_suffix(".md").read_text("utf-8"))))


@click.command()
@click.argument("model", default=BUNDLED)
@one_line_errors()
def main(model: str) -> None:
    """Fill the examples one after the other. Exits as `dg-lsp fill` does."""
    console = Console(highlight=False)
    checkpoint = find(model)
    named = "the model that ships in the package" if model == BUNDLED else model
    console.print(
        f"[bold]dg-lsp[/] fills {len(EXAMPLES)} gaps in real code with {named} "
        f"({checkpoint.parameters / 1e6:,.1f} M parameters), on the CPU, without network.\n"
        f"{_CHECKING if checkpoint.length == 'causal' else _SETTLING}\n"
    )
    with console.status("Loading the model"):
        began = time.perf_counter()
        from engine.fill.loading import load

        infiller = load(model, "cpu")
        load_ms = (time.perf_counter() - began) * 1000
    console.print(f"Loaded in {load_ms:.0f} ms.\n")
    for example in EXAMPLES:
        show(example, infiller.answer, console)
    if infiller.model.canvas:
        console.print("The same gaps by its canvas alone, where nothing checks what it says:\n")
        for example in EXAMPLES:
            show(example, infiller.by_canvas, console)
    console.print("For your own code: [bold].venv/bin/dg-lsp fill FILE --at LINE:COL --watch[/]")


def show(example: DemoExample, answer: Callable[[FillRequest, OnDraft], Filled], console: Console) -> None:
    """Fill one gap and show the canvas, the result and the figures."""
    gap = gap_at_markers(example.text)
    console.rule(example.title, align="left")
    request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, language=example.language)
    with Watch(gap, console) as watch:
        filled = answer(request, watch.show)
    for candidate in filled.candidates:
        console.print(preview(gap, candidate.text, marked=console.color_system is None), soft_wrap=True)
    console.print(figures(filled), soft_wrap=True)
    console.print()


if __name__ == "__main__":
    escape_unencodable()
    main()
