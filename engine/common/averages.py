"""An average that follows what it averages."""

from __future__ import annotations

WEIGHT = 0.3
"""Of the newest observation."""


def running_average(held: float | None, new: float) -> float:
    """`held`: the average before, None at first."""
    return new if held is None else held + WEIGHT * (new - held)
