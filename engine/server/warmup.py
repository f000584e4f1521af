"""A fill that nobody asked for: a first pass through code and kernels takes several times as long as the next."""

from __future__ import annotations

from engine.core.request import FillRequest
from engine.decoding.executor import drive
from engine.edit.answering import answering
from engine.models.base import Model
from engine.syntax.extent import cut_to_extent
from engine.syntax.heads import longest_valid_head
from engine.syntax.judge import Judge

_MOST_MS = 1000.0
_PREFIX, _SAID, _SUFFIX = "def rehearse(values):\n    return sorted(", "values) + (", ")\n"


def rehearse(model: Model) -> None:
    """Fill a gap, and judge an answer, as the model may have none."""
    drive(
        model,
        answering(
            model,
            FillRequest(prefix=_PREFIX, suffix=_SUFFIX, language="python", max_tokens=8, deadline_ms=_MOST_MS),
        ),
    )
    judge = Judge(_PREFIX, _SUFFIX, "python")
    cut_to_extent(judge.brackets, _SAID)
    longest_valid_head(judge, _SAID)
