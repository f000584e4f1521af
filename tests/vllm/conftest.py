"""One server for all tests here; it takes 2.7 GB and half a minute to start."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from engine.fill.loading import Infiller, load
from tests.vllm.server import KEY, MODEL, VllmServer

collect_ignore_glob = [] if "VLLM_VENV" in os.environ else ["test_*.py"]
"""`make test-vllm` installs the server and names its place; no other run knows of one."""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DG_LSP_SERVER_KEY", KEY)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    made = VllmServer(tmp_path_factory.mktemp("vllm") / "log")
    made.start()
    try:
        made.wait()
        yield made
    finally:
        made.kill()


@pytest.fixture
def remote(server: VllmServer, key: None) -> Infiller:
    return load(server.model)


@pytest.fixture(scope="session")
def local() -> Infiller:
    return load(str(MODEL), "cpu")
