"""When work of the model thread counts as hung: a load without progress, a round far beyond the slowest one seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

_LOAD_S = 120.0
"""A load that comes no further for so long; importing torch from a cold disk takes half of it at worst."""
_TIMES_SLOWEST = 50.0
_LEAST_ON_GPU_S, _LEAST_ON_CPU_S = 20.0, 60.0
"""A longer context, or a busy machine, may well cost that much after short rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    what: str
    moved: float
    limit_s: float


class Watchdog:
    """Written by the model thread, read by the event loop. No limit is above `longest_s`."""

    def __init__(self, longest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest_s = longest_s
        self._clock = clock
        self._work: _Work | None = None
        self._slowest_s: float | None = None
        self._is_first = True

    @contextmanager
    def load(self) -> Generator[Callable[[], None]]:
        """Within the block a model is loaded; yields what to call when it has come further."""

        def moved() -> None:
            limit_s = min(_LOAD_S, self._longest_s)
            self._work = _Work(what="loading the model makes no progress", moved=self._clock(), limit_s=limit_s)

        moved()
        try:
            yield moved
        finally:
            self._work = None
            self._slowest_s = None
            self._is_first = True

    @contextmanager
    def round(self, device: str) -> Generator[None]:
        """Within the block the model works for one round of requests, whose time tells how long the next may take."""
        began = self._clock()
        self._work = _Work(what="the model hangs", moved=began, limit_s=self._round_limit_s(device))
        try:
            yield
        finally:
            self._work = None
            # The first one after a load also sets up kernels.
            if not self._is_first:
                self._slowest_s = max(self._slowest_s or 0.0, self._clock() - began)
            self._is_first = False

    def bite(self) -> str:
        """What is wrong, in a few words; empty while nothing is."""
        work = self._work
        if work is None or self._clock() - work.moved < work.limit_s:
            return ""
        return f"{work.what} since {self._clock() - work.moved:.0f} s"

    def _round_limit_s(self, device: str) -> float:
        if self._slowest_s is None:
            return self._longest_s
        least_s = _LEAST_ON_GPU_S if device.startswith("cuda") else _LEAST_ON_CPU_S
        return min(max(_TIMES_SLOWEST * self._slowest_s, least_s), self._longest_s)
