"""Percentiles of measurements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.common.percentiles import percentile


@given(st.lists(st.floats(0, 1000), max_size=50), st.sampled_from([1, 50, 95, 99, 100]))
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(values, percent):
    found = percentile(values, percent)
    if not values:
        assert found is None
        return
    enough = [value for value in values if sum(other <= value for other in values) * 100 >= percent * len(values)]
    assert found == min(enough)
