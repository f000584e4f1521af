"""Counts and times of the work done, for `status`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from engine.common.messages import Percentiles
from engine.common.percentiles import percentile

_KEPT = 512


class Metrics:
    """Written by the model thread, read by the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._encode_ms: deque[float] = deque(maxlen=_KEPT)
        self._step_ms: deque[float] = deque(maxlen=_KEPT)
        self._total_ms: deque[float] = deque(maxlen=_KEPT)
        self._served = 0
        self._tokens = 0
        self._forwards = 0
        self._shared_forwards = 0

    def forward(self, ms: float, jobs: int) -> None:
        """Count one forward pass of the decoder for so many jobs."""
        with self._lock:
            self._step_ms.append(ms)
            self._forwards += 1
            self._shared_forwards += jobs > 1

    def answer(self, *, encode_ms: float, total_ms: float, tokens: int) -> None:
        """Count one answered request with so many tokens in its first candidate."""
        with self._lock:
            self._encode_ms.append(encode_ms)
            self._total_ms.append(total_ms)
            self._served += 1
            self._tokens += tokens

    def read(self) -> dict[str, Any]:
        """All metrics now, as `EngineStatus` takes them."""
        with self._lock:
            return {
                "served": self._served,
                "forwards": self._forwards,
                "shared_forwards": self._shared_forwards,
                "tokens_per_forward": self._tokens / self._forwards if self._forwards else None,
                "encode_ms": percentiles(self._encode_ms),
                "step_ms": percentiles(self._step_ms),
                "total_ms": percentiles(self._total_ms),
            }


def percentiles(values: Sequence[float]) -> Percentiles:
    return Percentiles(p50=percentile(values, 50), p95=percentile(values, 95))
