"""The deadline of a request, and how many more steps fit before it."""

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
        """Start the clock of the first step: what came before was no step."""
        self._last = self._clock()

    def step_is_done(self, *, usual: bool = True) -> bool:
        """Note how long a step took, if it was `usual`; returns whether another one would come too late."""
        now = self._clock()
        if usual and self._last is not None:
            self._longest = max(self._longest, now - self._last)
        self._last = now
        return self.passed()

    def passed(self) -> bool:
        """Whether another step, as long as the longest so far, would end after the deadline."""
        return self._lacks(self._clock() + self._spare)

    def has_room(self) -> bool:
        """Whether one last pass, as long as the longest step, would end before the deadline."""
        return not self._lacks(self._clock())

    def _lacks(self, now: float) -> bool:
        return self._end is not None and now + self._longest >= self._end

    def steps_left_ms(self) -> float:
        """Milliseconds left for steps; infinite without a deadline."""
        return self.left_ms() - self._spare * 1000

    def left_ms(self) -> float:
        """Milliseconds until the deadline, negative after it; infinite without one."""
        return math.inf if self._end is None else (self._end - self._clock()) * 1000
