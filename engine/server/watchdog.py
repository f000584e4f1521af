"""Hung work of the model thread: a load without progress, or a round far beyond the slowest one seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

_SILENT_S = 120.0
"""A load that comes no further for so long, or a first round after it. A load comes further with a percentage, or with
what it reads from a disk."""
_LEAST_READ_NBYTES = 1 << 20
"""A page of code is read from a disk now and then by whatever else the process does."""
_TIMES_SLOWEST = 50.0
_LEAST_ON_GPU_S, _LEAST_ON_CPU_S = 20.0, 60.0
"""A longer context, or a busy machine, may well cost that much after short rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    what: str
    moved: float
    limit_s: float
    reads: bool = False
    """Whether it comes further by reading."""


class Watchdog:
    """Written by the model thread, read by the event loop. No limit is above `longest_s`; `read_nbytes` tells what came
    from disks so far."""

    def __init__(
        self,
        longest_s: float,
        clock: Callable[[], float] = time.monotonic,
        read_nbytes: Callable[[], int] = lambda: 0,
    ) -> None:
        self._longest_s = longest_s
        self._clock = clock
        self._read_nbytes = read_nbytes
        self._seen_nbytes, self._seen_at = 0, 0.0
        """What had been read when a load last came further by reading, and when that was."""
        self._work: _Work | None = None
        self._slowest_s: float | None = None
        self._rounds = 0

    @contextmanager
    def load(self) -> Generator[Callable[[], None]]:
        """Within the block a model is loaded; yields what to call when it has come further."""

        def moved() -> None:
            limit_s = min(_SILENT_S, self._longest_s)
            self._work = _Work(
                what="loading the model makes no progress", moved=self._clock(), limit_s=limit_s, reads=True
            )

        moved()
        try:
            yield moved
        finally:
            self._work = None
            self._slowest_s = None
            self._rounds = 0

    @contextmanager
    def round(self, device: str) -> Generator[None]:
        """Within the block the model works for one round of requests, whose time tells how long the next may take."""
        began = self._clock()
        self._work = _Work(what="the model hangs", moved=began, limit_s=self._round_limit_s(device))
        try:
            yield
        finally:
            self._work = None
            took_s = self._clock() - began
            # The first one after a load also sets up kernels: it stands for a slow one only until there is another.
            self._slowest_s = max(took_s, self._slowest_s or 0.0) if self._rounds != 1 else took_s
            self._rounds += 1

    def bite(self) -> str:
        """What is hung, in a few words; empty while nothing is."""
        work = self._work
        if work is None:
            return ""
        still_s = self._clock() - max(work.moved, self._read_at() if work.reads else 0.0)
        return f"{work.what} since {still_s:.0f} s" if still_s >= work.limit_s else ""

    def _read_at(self) -> float:
        nbytes = self._read_nbytes()
        if nbytes - self._seen_nbytes >= _LEAST_READ_NBYTES:
            self._seen_nbytes, self._seen_at = nbytes, self._clock()
        return self._seen_at

    def _round_limit_s(self, device: str) -> float:
        least_s = _LEAST_ON_GPU_S if device.startswith("cuda") else _LEAST_ON_CPU_S
        limit_s = _SILENT_S if self._slowest_s is None else max(_TIMES_SLOWEST * self._slowest_s, least_s)
        return min(limit_s, self._longest_s)
