"""When an answer has to be there."""

from __future__ import annotations

import math
from collections.abc import Callable


class Deadline:
    """Milliseconds `ms` after `began`; None: never. `clock` counts seconds; steps leave `spare_ms` for what follows."""

    def __init__(self, ms: float | None, began: float, clock: Callable[[], float], spare_ms: float = 0.0) -> None:
        self._end = None if ms is None else began + ms / 1000
        self._spare = spare_ms / 1000
        self._began = self._last = began
        self._longest = 0.0
        self._clock = clock

    def passed(self) -> bool:
        """Whether another step as long as the longest so far would end too late."""
        if self._end is None:
            return False
        now = self._clock()
        self._longest = max(self._longest, now - self._last) if self._last != self._began else 0.0
        self._last = now
        return now + self._longest + self._spare >= self._end

    def steps_left_ms(self) -> float:
        """Milliseconds that are left for steps; infinite without a deadline."""
        return self.left_ms() - self._spare * 1000

    def left_ms(self) -> float:
        """Milliseconds that are left, below 0 behind it; infinite without one."""
        return math.inf if self._end is None else (self._end - self._clock()) * 1000
