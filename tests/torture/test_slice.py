"""A second of the harness, so that it stays one that runs."""

import pytest

from tests.torture.fuzz import run_apart


@pytest.mark.parametrize("target", ["marked text", "session", "safetensors", "engine"])
def test_a_slice_is_well(target: str):
    found = run_apart(target, 1.0, seed=1)
    assert found.well, found.told
    assert found.examples > 3
