"""What needs Triton, but no GPU: `make test-kernels` installs it and runs this; else it is skipped with the reason."""

import os
from importlib.util import find_spec

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = "Triton is not installed: make test-kernels"
    # Triton reads it when it is imported, which another test of the same process may have done.
    if find_spec("triton") is not None:
        missing = "" if os.environ.get("TRITON_INTERPRET") == "1" else "runs in Triton's interpreter: make test-kernels"
    for item in items:
        if missing and "kernels" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=missing))
