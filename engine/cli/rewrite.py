"""`dg-lsp rewrite`: a part of a file, written anew from itself."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.json import encode

from engine.cli.answers import answer
from engine.cli.options import AnyDevice, AnyModel, ByEngine, Candidates, Diff, FileName, Seed, Write
from engine.cli.source import folder_of, language_in, show_or_write, span_in
from engine.core.errors import BadInput, EngineError
from engine.core.exits import one_line_errors
from engine.core.request import FillRequest
from engine.text.textfile import read_text, writable_path


def _in_range(strength: float) -> float:
    if not 0 < strength <= 1:
        raise typer.BadParameter(f"{strength:g} is not in the range 0<x<=1.")
    return strength


@one_line_errors()
def rewrite(
    file: FileName,
    range_: Annotated[
        str, typer.Option("--range", metavar="L:C-L:C", help="What to rewrite; lines and columns count from 1.")
    ],
    instruction: Annotated[
        str,
        typer.Option(
            "--instruction", "-m", metavar="TEXT", help="What to do; the bundled model follows no instructions."
        ),
    ] = "",
    strength: Annotated[
        float,
        typer.Option(
            callback=_in_range, help="How much of it becomes noise: 0.3 mends, 0.6 changes, 1.0 starts from scratch."
        ),
    ] = 0.6,
    model: AnyModel = None,
    device: AnyDevice = None,
    engine: ByEngine = True,
    n: Candidates = 1,
    seed: Seed = 0,
    diff: Diff = False,
    write: Write = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object with all candidates.")] = False,
) -> None:
    """Rewrite a part of FILE, starting from what stands there. Exits with 1 where nothing better was found."""
    source = read_text(file)
    gap = span_in(source.text, range_)
    if not gap.old.strip():
        raise BadInput(f"There is nothing to rewrite at {range_}: give a range of text that is not blank.")
    if write:
        writable_path(source)
    request = FillRequest(
        task="rewrite",
        prefix=gap.prefix,
        old=gap.old,
        suffix=gap.suffix,
        language=language_in(source),
        instruction=instruction,
        strength=strength,
        n=n,
        seed=seed,
        folder=folder_of(source),
    )
    answered = answer(request, model, device, engine=engine)
    filled = answered.filled
    if instruction and not answered.instructed:
        typer.echo(f"dg-lsp: {filled.model} follows no instructions: the text was rewritten without one.", err=True)
    if json:
        typer.echo(encode(filled))
    if not filled.candidates:
        raise EngineError(f"Nothing better was found for this range: {source.name} is unchanged.")
    if write or not json:
        show_or_write(source, gap.prefix + filled.candidates[0].text + gap.suffix, diff=diff, write=write)
