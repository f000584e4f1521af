"""Command-line types shared by all packages."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
A_PATH = click.Path(path_type=Path)
A_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator, in this order."""

    def added(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return added


class FiniteRange(click.FloatRange):
    """A finite number within limits; click's own range accepts inf."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number:g} is not a finite number.", param, ctx)
        return number


class OrderedGroup(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)
