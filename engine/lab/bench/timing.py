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
    """Of the benchmark, such as "step"."""
    name: str
    spread: Spread
    at: int = 0
    """What it was measured at (a context length, a canvas width), where there is such a scale."""
    batch: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Two figures by each other: what a benchmark is read for."""

    name: str
    value: float
    aim: str = ""
    """What it should be, such as ">= 4"."""

    @property
    def met(self) -> bool | None:
        """Whether it is as it should be; None: it has no aim."""
        if not self.aim:
            return None
        sense, bound = self.aim.split()
        return self.value >= float(bound) if sense == ">=" else self.value <= float(bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopwatch:
    """Repeats work until it was done `repetitions` times or took `limit_s` seconds, twice at the least."""

    repetitions: int
    limit_s: float
    device: str = "cpu"

    def time(self, work: Callable[[], object], before: Callable[[], object] | None = None) -> Spread:
        """How long `work` takes, its first run aside; `before` runs ahead of each and is not counted."""
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
        """A GPU works on after a call returns."""
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()


def spread(taken: Sequence[float]) -> Spread:
    low, median, high = (percentile(taken, percent) or 0.0 for percent in (25, 50, 75))
    return Spread(median=median, low=low, high=high, count=len(taken))
