"""When to ask the model while somebody types: at once at rest, later in a burst that would outrun the answer."""

from __future__ import annotations

BURST_GAP_MS = 300.0
"""Keys further apart than this are no burst."""
_WEIGHT = 0.3
"""Of the newest observation in the running averages."""
_MARGIN = 1.25
"""How much longer than usual the next key may take before the burst counts as over."""


class Rhythm:
    """Running averages of key gaps and of the time an answer takes. All times in milliseconds of one clock."""

    def __init__(self, max_delay_ms: float) -> None:
        self.max_delay_ms = max_delay_ms
        self._last_key_ms: float | None = None
        self._gap_ms: float | None = None
        self._answer_ms: float | None = None

    def key(self, now_ms: float) -> None:
        """A key was struck."""
        gap_ms = None if self._last_key_ms is None else now_ms - self._last_key_ms
        self._last_key_ms = now_ms
        self._gap_ms = None if gap_ms is None or gap_ms > BURST_GAP_MS else _average(self._gap_ms, gap_ms)

    def answered(self, took_ms: float) -> None:
        """The model answered."""
        self._answer_ms = _average(self._answer_ms, took_ms)

    def gave_up(self, after_ms: float) -> None:
        """The model was still at it when it was told to stop, so an answer takes longer than that."""
        if self._answer_ms is None or after_ms > self._answer_ms:
            self._answer_ms = _average(self._answer_ms, after_ms)

    def delay_ms(self, now_ms: float) -> float:
        """How long to wait before asking; 0 at rest, and where the answer comes before the next key anyway."""
        if self._gap_ms is None or self._answer_ms is None or self._answer_ms < self._gap_ms:
            return 0.0
        since_key_ms = now_ms - (self._last_key_ms or 0.0)
        return min(max(self._gap_ms * _MARGIN - since_key_ms, 0.0), self.max_delay_ms)


def _average(held: float | None, new: float) -> float:
    return new if held is None else held + _WEIGHT * (new - held)
