"""What a pass takes by its rows on this machine, measured when a coder is loaded. Answers do not depend on it: it
decides how much is drafted.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise

MEASURED = (1, 8, 16)
"""Rows. Products are computed by steps of eight."""
LEAST, MOST = 0.01, 0.1
"""Of a pass over one row, what one more can cost: what else runs on the machine must not decide."""


def measured(run: Callable[[int], object], clock: Callable[[], float] = time.perf_counter) -> Callable[[int], float]:
    """What a pass over so many rows takes, as a multiple of one over a single row. `run` does one, and has done it when
    it returns."""
    seconds: list[float] = []
    for rows in MEASURED:
        run(rows)  # The first one writes oneDNN's programs.
        began = clock()
        run(rows)
        seconds.append(clock() - began)
    costs = [1.0]
    for (few, many), own in zip(pairwise(MEASURED), seconds[1:], strict=True):
        more = own / max(seconds[0], 1e-9) - costs[-1]
        costs.append(costs[-1] + min(max(more, LEAST * (many - few)), MOST * (many - few)))
    return lambda rows: _between(rows, costs)


def _between(rows: int, costs: Sequence[float]) -> float:
    at = min(max(bisect_left(MEASURED, rows), 1), len(MEASURED) - 1)
    few, many = MEASURED[at - 1], MEASURED[at]
    return costs[at - 1] + (costs[at] - costs[at - 1]) * (max(rows, 1) - few) / (many - few)
