"""Counts and times, as `status` tells them."""

from __future__ import annotations

import pytest

from engine.common.messages import Percentiles
from engine.server.metrics import Metrics, percentiles


@pytest.mark.parametrize(
    ("values", "p50", "p95"),
    [
        ([], None, None),
        ([7.0], 7.0, 7.0),
        ([1.0, 3.0], 1.0, 3.0),
        ([float(value) for value in range(101)], 50.0, 95.0),
        ([float(value) for value in reversed(range(101))], 50.0, 95.0),
        ([1.0] * 19 + [100.0], 1.0, 1.0),
    ],
    ids=["none", "one", "two", "many", "in any order", "one far out"],
)
def test_percentiles(values, p50, p95):
    assert percentiles(values) == Percentiles(p50=p50, p95=p95)


def test_a_reading_tells_what_was_counted():
    metrics = Metrics()
    assert metrics.read()["tokens_per_forward"] is None
    for ms, jobs in ((1.0, 1), (2.0, 3), (3.0, 1)):
        metrics.forward(ms, jobs)
    metrics.answer(encode_ms=10.0, total_ms=20.0, tokens=6)
    assert metrics.read() == {
        "served": 1,
        "forwards": 3,
        "shared_forwards": 1,
        "tokens_per_forward": 2.0,
        "encode_ms": Percentiles(p50=10.0, p95=10.0),
        "step_ms": Percentiles(p50=2.0, p95=3.0),
        "total_ms": Percentiles(p50=20.0, p95=20.0),
    }
