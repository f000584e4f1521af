"""Repeated measurements: medians with their spread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.common.percentiles import percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Milliseconds over `count` repetitions, with the first and third quartile."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    part: str
    """The part of the benchmark, such as "step"."""
    name: str
    spread: Spread
    at: int = 0
    """The length of a context or width of a canvas that it was measured at, where there is one."""
    batch: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A quotient of two figures, which a benchmark is read for."""

    name: str
    value: float
    aim: str = ""
    """The condition that it should meet, such as ">= 4"."""

    @property
    def met(self) -> bool | None:
        """Whether it meets its aim; None: it has none."""
        if not self.aim:
            return None
        sense, bound = self.aim.split()
        return self.value >= float(bound) if sense == ">=" else self.value <= float(bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopwatch:
    """Repeats work until it was done `repetitions` times or took `limit_s` seconds, at least twice."""

    repetitions: int
    limit_s: float
    device: str = "cpu"

    def time(self, work: Callable[[], object], before: Callable[[], object] | None = None) -> Spread:
        """The time of `work` without its first run. `before` is called before each run and is not timed."""
        taken: list[float] = []
        ends = time.perf_counter() + self.limit_s
        for run in range(self.repetitions + 1):
            if before:
                before()
            self._wait()
            began = time.perf_counter()
            work()
            self._wait()
            taken.append((time.perf_counter() - began) * 1000)
            if run > 1 and time.perf_counter() > ends:
                break
        return spread(taken[1:])

    def _wait(self) -> None:
        """Wait until a GPU has finished its work: calls return before."""
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()


def spread(taken: Sequence[float]) -> Spread:
    low, median, high = (percentile(taken, percent) or 0.0 for percent in (25, 50, 75))
    return Spread(median=median, low=low, high=high, count=len(taken))
