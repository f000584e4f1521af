"""What needs CUDA: `make test-gpu` runs it, elsewhere it is skipped with the reason."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    own = [item for item in items if "gpu" in item.path.parts]
    if not own:
        return
    import torch

    if not torch.cuda.is_available():
        missing = pytest.mark.skip(reason="torch finds no CUDA device here")
        for item in own:
            item.add_marker(missing)


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory):
    """The tiny checkpoint in the released shape, written once."""
    from tests.engine.released import write_checkpoint

    return write_checkpoint(tmp_path_factory.mktemp("released"))


@pytest.fixture(autouse=True)
def float32_is_multiplied_in_float32(monkeypatch: pytest.MonkeyPatch):
    """Of weights that were rounded to bfloat16, too: a processor with units for it would take these."""
    from tests.engine.formats import choose

    choose(monkeypatch)
