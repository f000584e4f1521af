"""`dg-lsp rewrite`: rewrites part of a file."""

from __future__ import annotations

import click
from msgspec.json import encode

from engine.cli.answers import answer
from engine.cli.options import answer_options, diff_option, file_argument, n_option, seed_option, write_option
from engine.cli.source import folder_of, language_in, show_or_write, span_in
from engine.common.errors import BadInput, EngineError
from engine.common.exits import one_line_errors
from engine.common.options import FiniteRange
from engine.common.request import FillRequest
from engine.common.textfile import read_text, writable_path


@click.command()
@file_argument
@click.option(
    "--range",
    "range_",
    metavar="L:C-L:C|L-L",
    required=True,
    help="The range to rewrite, or whole lines; lines and columns count from 1.",
)
@click.option(
    "--instruction",
    "-m",
    metavar="TEXT",
    default="",
    show_default=False,
    help="What to do. The bundled model follows no instructions.",
)
@click.option(
    "--strength",
    type=FiniteRange(0, 1, min_open=True),
    default=0.6,
    help="How much of the text becomes noise: 0.3 for small changes, 0.6 for larger ones, 1.0 from scratch.",
)
@answer_options
@n_option
@seed_option
@diff_option
@write_option
@click.option("--json", is_flag=True, help="Print one JSON object with all candidates.")
@one_line_errors()
def rewrite(
    file: str,
    range_: str,
    instruction: str,
    strength: float,
    model: str | None,
    device: str | None,
    engine: bool,
    n: int,
    seed: int,
    diff: bool,
    write: bool,
    json: bool,
) -> None:
    """Rewrite part of FILE. Exits with 1 if no rewrite was found."""
    source = read_text(file)
    gap = span_in(source.text, range_)
    if not gap.old.strip():
        raise BadInput(f"There is nothing to rewrite at {range_}: give a range with text.")
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
        deaf = f"{filled.model} follows no instructions"
        if write:
            raise EngineError(
                f"{deaf}: {source.name} is unchanged. Without one, what the model finds likely is written."
            )
        click.echo(f"dg-lsp: {deaf}: yours was ignored.", err=True)
    if json:
        click.echo(encode(filled))
    if not filled.candidates:
        raise EngineError(f"No rewrite was found for this range: {source.name} is unchanged.")
    if all(each.text == gap.old for each in filled.candidates):
        raise EngineError(f"The model would leave {range_} as it is: say more exactly what to change.")
    if write or not json:
        show_or_write(source, gap.prefix + filled.candidates[0].text + gap.suffix, diff=diff, write=write)
