"""Percentiles of measurements."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float, digits: int | None = None) -> float | None:
    """The percentile by nearest rank, rounded to `digits`; None of no values."""
    if not values:
        return None
    found = sorted(values)[int(max(-(-len(values) * percent // 100), 1)) - 1]
    return found if digits is None else round(found, digits)
