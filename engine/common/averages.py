"""A running average."""

from __future__ import annotations

WEIGHT = 0.3
"""Weight of the newest observation."""


def running_average(held: float | None, new: float) -> float:
    """The average after one more observation. `held`: the average before, None at first."""
    return new if held is None else held + WEIGHT * (new - held)
