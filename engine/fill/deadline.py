"""When an answer has to be there."""

from __future__ import annotations

import math
from collections.abc import Callable


class Deadline:
    """Milliseconds `ms` after `began`; None: never. `clock` counts seconds; steps leave `spare_ms` for what follows."""

    def __init__(self, ms: float | None, began: float, clock: Callable[[], float], spare_ms: float = 0.0) -> None:
        self._end = None if ms is None else began + ms / 1000
        self._spare = spare_ms / 1000
        self._last: float | None = None
        self._longest = 0.0
        self._clock = clock

    def step_begins(self) -> None:
        """What was done before is not a step."""
        self._last = self._clock()

    def step_is_done(self) -> bool:
        """Take in how long a step was, since the last one or since it began; whether another is too late."""
        now = self._clock()
        if self._last is not None:
            self._longest = max(self._longest, now - self._last)
        self._last = now
        return self.passed()

    def passed(self) -> bool:
        """Whether another step, as long as the longest so far, would end too late."""
        return self._lacks(self._clock() + self._spare)

    def has_room(self) -> bool:
        """Whether what takes as long as the longest step, and is the last that is done, would end in time."""
        return not self._lacks(self._clock())

    def _lacks(self, now: float) -> bool:
        return self._end is not None and now + self._longest >= self._end

    def steps_left_ms(self) -> float:
        """Milliseconds that are left for steps; infinite without a deadline."""
        return self.left_ms() - self._spare * 1000

    def left_ms(self) -> float:
        """Milliseconds that are left, below 0 after it; infinite without one."""
        return math.inf if self._end is None else (self._end - self._clock()) * 1000
