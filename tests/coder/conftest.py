"""What needs the published 0.5B file: `make test-coder` fetches it; where it can't be had, all is skipped, with the
reason. `DG_LSP_CODER` names a file that is there already."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.common.errors import BadInput
from engine.models.checkpoints.catalog import NotCached, coder_file
from engine.models.checkpoints.coders import CODERS


@pytest.fixture(scope="session")
def file() -> Path:
    if named := os.environ.get("DG_LSP_CODER"):
        return Path(named)
    try:
        return coder_file(CODERS["coder-0.5b"])
    except NotCached as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def coder(file: Path):
    """The model as it is served."""
    from engine.fill.loading import load

    return load(str(file), "cpu").model


@pytest.fixture(scope="session")
def peer(file: Path) -> Iterator[object]:
    """llama.cpp with the same file."""
    from engine.lab.peer.client import peer_of

    try:
        held = peer_of(str(file))
    except BadInput as missing:
        pytest.skip(str(missing))
    with held:
        yield held
