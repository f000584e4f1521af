"""One engine with an oracle for all tests that do no harm to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cases import CASES
from tests.engine.processes import Home, home, running


@pytest.fixture(scope="session")
def shared() -> Iterator[Home]:
    """A home whose engine runs."""
    with home() as place, running(place, "--model", place.oracle(*CASES)):
        yield place
