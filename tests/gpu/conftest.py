"""What needs CUDA: `make test-gpu` runs it, elsewhere it is skipped with the reason."""

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        missing = pytest.mark.skip(reason="torch finds no CUDA device here")
        for item in items:
            if "gpu" in item.path.parts:
                item.add_marker(missing)


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory):
    """The tiny checkpoint in the released shape, written once."""
    from tests.engine.released import write_checkpoint

    return write_checkpoint(tmp_path_factory.mktemp("released"))
