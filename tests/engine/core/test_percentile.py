from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.percentile import percentile


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=50), st.sampled_from([0, 1, 25, 50, 95, 99, 100]))
def test_values_are_interpolated_as_numpy_does(values, percent):
    assert percentile(values, percent) == pytest.approx(np.percentile(values, percent))


def test_there_is_none_of_no_values():
    assert percentile([], 50) is None
