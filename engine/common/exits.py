"""How a command ends: errors raised on purpose become one line on standard error and an exit code. What it
prints never ends it."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from engine.common.errors import BadInput, EngineError
from engine.common.terminal import shown

BAD_INPUT, FAILURE = 2, 1


def escape_unencodable() -> None:
    """From now on, characters that a terminal or a pipe can't take are shown as escapes; what is printed as bytes is
    left alone."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # no stream where there is no console
            stream.reconfigure(errors="backslashreplace")


def in_one_line(error: EngineError) -> str:
    """What standard error says of it."""
    return shown(f"dg-lsp: {' '.join(str(error).split())}")


def exit_code(error: EngineError) -> int:
    """2 for BadInput, 1 for others."""
    return BAD_INPUT if isinstance(error, BadInput) else FAILURE


@contextmanager
def one_line_errors() -> Generator[None]:
    """As a decorator of a command's function or around a block of one: an EngineError ends it, in one line."""
    try:
        yield
    except EngineError as error:
        # Who is no command of click's needs none of it.
        import click

        click.echo(in_one_line(error), err=True)
        raise click.exceptions.Exit(exit_code(error)) from error


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
