"""`dg-lsp fill`: a gap in a file or in standard input."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer
from msgspec.json import encode
from rich.console import Console

from engine.cli.answers import answer
from engine.cli.options import AnyDevice, AnyModel, ByEngine, Candidates, FileName, Seed, Write
from engine.cli.preview import figures, heading, preview
from engine.cli.source import folder_of, language_in
from engine.cli.watch import Watch
from engine.core.errors import BadInput, EngineError
from engine.core.exits import one_line_errors
from engine.core.options import number
from engine.core.request import Filled, FillRequest
from engine.text.marked import MARKER, MarkedText, gap_at_markers, gap_between, line_count, parse_position
from engine.text.textfile import read_text, replace_text, writable_path


@one_line_errors()
def fill(
    file: FileName,
    at: Annotated[str | None, typer.Option(metavar="LINE:COL", help="Where the gap is, counted from 1.")] = None,
    to: Annotated[str | None, typer.Option(metavar="LINE:COL", help="Replace the text from --at to here.")] = None,
    model: AnyModel = None,
    device: AnyDevice = None,
    engine: ByEngine = True,
    n: Candidates = 1,
    max_tokens: Annotated[int, typer.Option(min=1, max=4096, help="Longest answer, in tokens.")] = 96,
    width: Annotated[int | None, typer.Option(min=1, max=4096, help="Fix the width of the gap, in tokens.")] = None,
    deadline_ms: Annotated[float | None, number(1, "Answer with the best canvas by then.", most=1e9)] = None,
    seed: Seed = 0,
    watch: Annotated[bool, typer.Option("--watch", help="Show the canvas settling.")] = False,
    write: Write = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fill a gap in FILE: at a position, or where one ▮ stands; ▮old▮, on one line, is a gap with text to replace."""
    if width is not None and width > max_tokens:
        raise BadInput(f"--width {width} is more than --max-tokens {max_tokens}.")
    source = read_text(file)
    gap = _gap(source.text, at, to)
    if write:
        writable_path(source)
    request = FillRequest(
        prefix=gap.prefix,
        suffix=gap.suffix,
        old=gap.old,
        language=language_in(source),
        n=n,
        max_tokens=max_tokens,
        width=width,
        deadline_ms=deadline_ms,
        seed=seed,
        folder=folder_of(source),
    )
    with Watch(gap, Console(stderr=True)) if watch else nullcontext() as view:
        answered = answer(request, model, device, engine=engine, on_draft=view.show if view else None)
    filled = answered.filled
    if write:
        if not filled.candidates:
            raise EngineError(f"The model has no answer for this gap: {source.name} is unchanged.")
        replace_text(source, gap.prefix + filled.candidates[0].text + gap.suffix)
    if json:
        typer.echo(encode(filled))
    else:
        _show(gap, filled, answered.source)


def _gap(text: str, at: str | None, to: str | None) -> MarkedText:
    if at is not None:
        return gap_between(text, parse_position(at), None if to is None else parse_position(to))
    if to is not None:
        raise BadInput("--to ends a span that --at starts: give both.")
    gap = gap_at_markers(text)
    # Two gaps of one ▮ each look like one around all that is between them, which must not get lost.
    if (last := line_count(gap.old)) > 1:
        first = line_count(gap.prefix)
        raise BadInput(
            f"The two {MARKER} markers stand on lines {first} and {first + last - 1}: leave one at the gap, "
            "or give the lines to replace with --at LINE:COL --to LINE:COL."
        )
    return gap


def _show(gap: MarkedText, filled: Filled, source: str) -> None:
    console = Console(highlight=False)
    for index, candidate in enumerate(filled.candidates):
        if len(filled.candidates) > 1:
            console.print(heading(candidate, index, len(filled.candidates)))
        console.print(preview(gap, candidate.text, marked=console.color_system is None), soft_wrap=True)
    console.print(figures(filled, source), soft_wrap=True)
