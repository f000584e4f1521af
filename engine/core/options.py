"""Options that commands of any room have."""

from __future__ import annotations

import math
from typing import Any

import typer


def number(least: float, about: str, most: float | None = None) -> Any:
    """An option that is at least so much, and finite: to typer's own ranges inf is a number, and to older ones nan."""
    return typer.Option(min=least, max=most, callback=_finite, help=about)


def _finite(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value:g} is no number to count with.")
    return value
