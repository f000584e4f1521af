"""`dg-lsp fill`: fills a gap in a file or in standard input."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click
from msgspec.json import encode
from rich.console import Console

from engine.cli.answers import answer
from engine.cli.options import answer_options, file_argument, json_option, n_option, seed_option, write_option
from engine.cli.preview import figures, heading, preview
from engine.cli.source import folder_of, language_in, write_text
from engine.cli.watch import Watch
from engine.common.errors import BadInput, EngineError
from engine.common.exits import one_line_errors
from engine.common.marked import MARKER, MarkedText, gap_at_markers, gap_between, line_count, parse_position
from engine.common.options import FiniteRange
from engine.common.request import Filled, FillRequest
from engine.common.textfile import read_text, writable_path
from engine.models.checkpoints.choice import choose, tell_once


@click.command()
@file_argument
@click.option("--at", metavar="LINE:COL", help="The position of the gap, counted from 1.")
@click.option("--to", metavar="LINE:COL", help="Replace the text from --at to here.")
@answer_options
@n_option
@click.option("--max-tokens", type=click.IntRange(1, 4096), default=96, help="Longest answer, in tokens.")
@click.option("--width", type=click.IntRange(1, 4096), help="The width of the gap, in tokens.")
@click.option("--deadline-ms", type=FiniteRange(1, 1e9), help="Return the best canvas after so many milliseconds.")
@seed_option
@click.option("--watch", is_flag=True, help="Show the canvas while it settles.")
@click.option("--canvas", is_flag=True, help="Let the canvas of coder-0.5b fill the gap by itself, in this process.")
@write_option
@json_option
@one_line_errors()
def fill(
    file: str,
    at: str | None,
    to: str | None,
    model: str | None,
    device: str | None,
    engine: bool,
    n: int,
    max_tokens: int,
    width: int | None,
    deadline_ms: float | None,
    seed: int,
    watch: bool,
    canvas: bool,
    write: bool,
    json: bool,
) -> None:
    """Fill a gap in FILE, at a position or at a ▮ in the text; ▮old▮, on one line, is a gap with text to replace."""
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
        on_draft = view.show if view else None
        answered = answer(request, model, device, engine=engine, canvas=canvas, on_draft=on_draft)
    filled = answered.filled
    if write:
        if not filled.candidates:
            raise EngineError(
                f"The model found no answer for this gap ({_why_none(request, filled)}): {source.name} is unchanged."
            )
        write_text(source, gap.prefix + filled.candidates[0].text + gap.suffix)
    if model is None and sys.stderr.isatty() and (advice := tell_once(choose())):
        click.echo(f"dg-lsp: {advice}", err=True)
    if json:
        click.echo(encode(filled))
    else:
        _show(gap, filled, answered.source, _why_none(request, filled))


def _gap(text: str, at: str | None, to: str | None) -> MarkedText:
    if at is not None:
        return gap_between(text, parse_position(at), None if to is None else parse_position(to))
    if to is not None:
        raise BadInput("--to needs --at: give both ends of the span.")
    gap = gap_at_markers(text)
    # Two markers for two gaps look like one gap around the text between them, which must not be lost.
    if (last := line_count(gap.old)) > 1:
        first = line_count(gap.prefix)
        raise BadInput(
            f"The two {MARKER} markers stand on lines {first} and {first + last - 1}: leave one at the gap, "
            "or give the lines to replace with --at LINE:COL --to LINE:COL."
        )
    return gap


def _why_none(request: FillRequest, filled: Filled) -> str:
    """Why there is no answer."""
    if request.deadline_ms is not None and filled.ms.total - filled.ms.load >= request.deadline_ms:
        return "the deadline passed; raise --deadline-ms"
    return "nothing that the model wrote fits"


def _show(gap: MarkedText, filled: Filled, source: str, why: str) -> None:
    console = Console(highlight=False)
    for index, candidate in enumerate(filled.candidates):
        if len(filled.candidates) > 1:
            console.print(heading(candidate, index, len(filled.candidates)))
        console.print(preview(gap, candidate.text, marked=console.color_system is None), soft_wrap=True)
    console.print(figures(filled, source, why), soft_wrap=True)
