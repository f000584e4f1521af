"""How a command ends: expected errors become one line on standard error and an exit code. Printing never raises."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from engine.common.errors import BadInput, EngineError
from engine.common.terminal import shown

BAD_INPUT, FAILURE = 2, 1


def escape_unencodable() -> None:
    """From now on, print characters that the terminal or pipe can't encode as escapes. Bytes are unaffected."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # no stream where there is no console
            stream.reconfigure(errors="backslashreplace")


def in_one_line(error: EngineError) -> str:
    """The text for standard error."""
    return shown(f"dg-lsp: {' '.join(str(error).split())}")


def exit_code(error: EngineError) -> int:
    """2 for BadInput, 1 for others."""
    return BAD_INPUT if isinstance(error, BadInput) else FAILURE


@contextmanager
def one_line_errors() -> Generator[None]:
    """A decorator or context manager: an EngineError ends the command with one line."""
    try:
        yield
    except EngineError as error:
        # Only click's commands need it.
        import click

        click.echo(in_one_line(error), err=True)
        raise click.exceptions.Exit(exit_code(error)) from error


@contextmanager
def interruptible() -> Generator[None]:
    """SIGTERM ends the block by KeyboardInterrupt, as Ctrl-C does, so that it can clean up. Ctrl-C works even where the
    process was started with the signal ignored, as scripts do in the background.
    """

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        # asyncio cancels what runs when this signal comes, and what is no loop is interrupted.
        signal.raise_signal(signal.SIGINT)

    with _handled({signal.SIGINT: signal.default_int_handler, signal.SIGTERM: end}):
        yield


@contextmanager
def pausing() -> Generator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM came; a second one ends the process at once."""
    signals: list[int] = []

    def note(number: int, frame: object) -> None:
        signals.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    with _handled({signal.SIGINT: note, signal.SIGTERM: note}) as before:
        yield lambda: bool(signals)


@contextmanager
def _handled(handlers: Mapping[int, Callable[[int, Any], object]]) -> Generator[Mapping[int, Any]]:
    """Within the block these handle signals; yields those that do otherwise."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
