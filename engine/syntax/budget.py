"""Time for a syntax check. One object is passed down, and everything slow queries it."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """A budget that counts from when it is made. `ms` None never ends."""

    def __init__(self, ms: float | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._end = None if ms is None else clock() + ms / 1000

    def over(self) -> bool:
        return self._end is not None and self._clock() >= self._end

    def left_ms(self) -> float:
        """Milliseconds that are left, never below 0; infinite without a limit."""
        return float("inf") if self._end is None else max(0.0, self._end - self._clock()) * 1000
