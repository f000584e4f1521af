"""Times of fills on this machine, in a file that all processes read, so that they choose alike. Imports no torch."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

from engine.common.files import replacing
from engine.common.runtime_paths import data_dir
from engine.models.checkpoints.coders import CODERS

ENOUGH = 12
"""Fills before a time is written."""
_HEEDED_S = 24 * 3600.0
"""Age up to which a time counts: later the machine may be another, or less busy."""
_FILE = "fill-times.json"


class FillTimes:
    """Times of fills by the loaded coder; other models are not measured. Their median counts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ms: list[float] = []

    def add(self, ms: float) -> None:
        """Add the time of a fill without its wait for others; after ENOUGH fills a time is written for all
        processes."""
        if self._name not in CODERS or len(self._ms) >= ENOUGH:
            return
        self._ms.append(ms)
        if len(self._ms) == ENOUGH:
            _write(self._name, statistics.median(self._ms))


def measured_ms(name: str) -> float | None:
    """The time of a fill that was measured here lately, in milliseconds; None: unknown."""
    try:
        ms, at = map(float, _read().get(name, ()))
    except (TypeError, ValueError):
        return None
    return ms if 0 <= time.time() - at < _HEEDED_S and ms > 0 else None


def _write(name: str, ms: float) -> None:
    held = _read() | {name: [round(ms, 1), time.time()]}
    file = data_dir() / _FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as draft:
            draft.write_text(json.dumps(held), encoding="utf-8")
    except OSError:  # what is not kept is measured again
        return


def _read() -> dict[str, Any]:
    try:
        found = json.loads((data_dir() / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
