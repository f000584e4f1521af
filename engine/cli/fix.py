"""`dg-lsp fix`: fixes a file's syntax."""

from __future__ import annotations

import time

import click

from engine.cli.answers import answer
from engine.cli.options import answer_options, diff_option, file_argument, seed_option, write_option
from engine.cli.source import folder_of, language_in, show_or_write
from engine.common.errors import BadInput, EngineError
from engine.common.exits import one_line_errors
from engine.common.request import FillRequest
from engine.common.terminal import shown
from engine.common.textfile import read_text, writable_path

_PARSE_MS = 3000.0
"""Limit of processor time for a syntax check, as in a fill."""


@click.command()
@file_argument
@answer_options
@seed_option
@diff_option
@write_option
@one_line_errors()
def fix(file: str, model: str | None, device: str | None, engine: bool, seed: int, diff: bool, write: bool) -> None:
    """Fix the syntax of FILE and change nothing else. Exits with 1 if no fix was found."""
    source = read_text(file)
    language = language_in(source)
    if not language:
        named = "begin it with" if source.path is None else "give it its usual ending, or"
        raise BadInput(
            f"The language of {source.name} is unknown, so its syntax can't be checked: "
            f"{named} a first line such as #!/usr/bin/env python3."
        )
    if write:
        writable_path(source)
    from engine.syntax.budget import Budget
    from engine.syntax.languages import language_of
    from engine.syntax.parsed_text import parse_text

    budget = Budget(_PARSE_MS, time.thread_time)
    parsed = parse_text(source.text, language_of(language) or "", budget)
    if parsed is None and budget.over():
        raise EngineError(
            f"The syntax of {source.name} can't be checked within {_PARSE_MS / 1000:g} s: give a smaller text."
        )
    if parsed and parsed.is_sound:
        click.echo(shown(f"{source.name} has no syntax problem."), err=True)
        return
    request = FillRequest(
        task="fix", prefix="", old=source.text, suffix="", language=language, seed=seed, folder=folder_of(source)
    )
    filled = answer(request, model, device, engine=engine).filled
    if not filled.candidates:
        raise EngineError(f"No fix was found: {source.name} is unchanged.")
    show_or_write(source, filled.candidates[0].text, diff=diff, write=write)
