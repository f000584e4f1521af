from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from engine.common.credentials import HTTP_TOKEN

if TYPE_CHECKING:
    from tests.engine.processes import Home
    from tests.engine.server.http.asking import Client


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    # Imported here, and below, for the tests beside that need no engine.
    from tests.engine.processes import home

    monkeypatch.delenv(HTTP_TOKEN, raising=False)
    with home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])
        yield place


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Of a server that the tests of a file share."""
    from tests.engine.processes import home
    from tests.engine.server.http.asking import http_server

    with pytest.MonkeyPatch.context() as patch, home() as place:
        patch.delenv(HTTP_TOKEN, raising=False)
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            patch.setenv(name, place.environment[name])
        with http_server(place) as (client, _):
            yield client
