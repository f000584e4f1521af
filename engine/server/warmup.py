"""A fill that nobody asked for: a first pass through code and kernels takes several times as long as the next."""

from __future__ import annotations

from engine.core.request import FillRequest
from engine.decoding.executor import drive
from engine.edit.answering import answering
from engine.models.base import Model

_MOST_MS = 1000.0


def warm_up(model: Model) -> None:
    """Fill a gap. Without a language: the process that checks syntax warms up by itself."""
    request = FillRequest(
        prefix="def warm_up(values):\n    return sorted(", suffix=")\n", max_tokens=8, deadline_ms=_MOST_MS
    )
    drive(model, answering(model, request))
