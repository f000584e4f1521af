from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.core.credentials import HTTP_TOKEN
from tests.engine.processes import Home, home
from tests.engine.server.http.asking import Client, door


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.delenv(HTTP_TOKEN, raising=False)
    with home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])
        yield place


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Of a door that the tests of a file share."""
    with pytest.MonkeyPatch.context() as patch, home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            patch.setenv(name, place.environment[name])
        with door(place) as (client, _):
            yield client
