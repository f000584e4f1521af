"""A tiny checkpoint in the released shape, written once."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read only: copy it to change it."""
    from tests.engine.released import write_checkpoint

    return write_checkpoint(tmp_path_factory.mktemp("released"))


@pytest.fixture
def changeable(released: Path, tmp_path: Path) -> Path:
    """A copy of the tiny checkpoint that a test may break."""
    return shutil.copytree(released, tmp_path / "model")
