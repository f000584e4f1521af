"""How a command ends: errors raised on purpose become one line on standard error and an exit code."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import typer

from engine.core.errors import BadInput, EngineError

BAD_INPUT, FAILURE = 2, 1


@contextmanager
def one_line_errors() -> Generator[None]:
    """As a decorator of a command or around a block: BadInput exits with 2, other EngineErrors with 1."""
    try:
        yield
    except EngineError as error:
        typer.echo(f"dg-lsp: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(BAD_INPUT if isinstance(error, BadInput) else FAILURE) from error
