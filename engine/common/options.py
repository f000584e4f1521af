"""What commands of any room have in common with each other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

A_PATH = click.Path(path_type=Path)


class FiniteRange(click.FloatRange):
    """A number within bounds, and finite: to click's own range inf is a number."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number:g} is no number to count with.", param, ctx)
        return number


class OrderedGroup(click.Group):
    """Lists its commands as they were added: what comes first is wanted first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)
