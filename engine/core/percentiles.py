"""Percentiles of measurements."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that so many percent do not exceed (nearest rank); None of none."""
    rank = max(-(-len(values) * percent // 100), 1)
    return sorted(values)[int(rank) - 1] if values else None
