"""How a command ends: errors raised on purpose become one line on standard error and an exit code. What it
prints never ends it."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import typer

from engine.core.errors import BadInput, EngineError

BAD_INPUT, FAILURE = 2, 1


def escape_unencodable() -> None:
    """From now on, characters that a terminal or a pipe can't take are shown as escapes; what is printed as bytes is
    left alone."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # no stream where there is no console
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def one_line_errors() -> Generator[None]:
    """As a decorator of a command or around a block: BadInput exits with 2, other EngineErrors with 1."""
    try:
        yield
    except EngineError as error:
        typer.echo(f"dg-lsp: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(BAD_INPUT if isinstance(error, BadInput) else FAILURE) from error


@contextmanager
def interruptible() -> Generator[None]:
    """SIGTERM ends the block as Ctrl-C does, by KeyboardInterrupt, so that what it made doesn't outlast it.

    What a script starts in the background begins with Ctrl-C's signal ignored; here it counts there, too.
    """

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        # asyncio cancels what runs when this signal comes, and what is no loop is interrupted.
        signal.raise_signal(signal.SIGINT)

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, end),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def pausing() -> Generator[Callable[[], bool]]:
    """Whether someone asked to stop, by Ctrl-C or SIGTERM; a second time ends at once."""
    asked: list[int] = []

    def note(number: int, frame: object) -> None:
        asked.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
