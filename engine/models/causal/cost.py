"""The cost of a forward pass by its rows on this machine, measured when a coder is loaded. It decides how many tokens
are drafted, never what is answered.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise

MEASURED = (1, 8, 16)
"""Numbers of rows that are measured; products are computed eight rows at a time."""
LEAST, MOST = 0.01, 0.1
"""Bounds on the cost of one more row, as a share of a pass over one: other work on the machine must not decide."""


def measured(run: Callable[[int], object], clock: Callable[[], float] = time.perf_counter) -> Callable[[int], float]:
    """A function from a number of rows to the cost of a pass over them, in passes over one row. `run` does a pass over
    so many rows and returns after it."""
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
