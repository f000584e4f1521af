"""Engines for clients: one that language servers share, and one with an HTTP server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cases import CASES
from tests.engine.processes import Home, home, running

ABOVE = "".join(f"name_{number} = {number}\n" for number in range(40))
"""More than the oracle looks at: some clients begin a prompt with lines of their own."""
LINE = f"{ABOVE}def area(w, h):\n    ▮return w * h▮\n\nprint(area(2, 3))\n"
LINES = f"{ABOVE}def area(w, h):\n    ▮wide = w * 2\n    return wide * h▮\n\nprint(area(2, 4))\n"


def taken(case: str) -> str:
    """A case's text with its answer, and no closing bracket twice."""
    return case.replace(")▮)", ")").replace("▮", "")


def warm(place: Home) -> None:
    """Have the model loaded, which takes as long as importing torch does."""
    with place.client() as wire:
        wire.fill(1, "x = ")
        wire.reply(1)


@pytest.fixture(scope="session")
def shared() -> Iterator[Home]:
    """A home whose engine runs with the oracle."""
    with home() as place, running(place, "--model", place.oracle(*CASES)):
        warm(place)
        yield place


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[Home, str]]:
    """A home whose engine answers by HTTP, and its address."""
    with home() as place, running(place, "--model", place.oracle(LINE, LINES), "--http", "127.0.0.1:0"):
        warm(place)
        told = place.status()
        assert told is not None
        yield place, told["http"]
