"""Models whose name says where they are, instead of what files hold them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.common import torch_import
from engine.common.names import ORACLE
from engine.common.server_address import REMOTE
from engine.models.base import Model


def open_addressed(name: str) -> Model | None:
    """The model of a name that says where it is; None: the name is of files. Raises ModelError."""
    for prefix, opened in _ADDRESSED.items():
        if name.startswith(prefix):
            return opened(name)
    return None


def _open_oracle(name: str) -> Model:
    from engine.models.oracle.model import read_oracle

    return read_oracle(Path(name.removeprefix(ORACLE)))


def _open_remote(name: str) -> Model:
    # HTTP is for those who use it.
    from engine.models.remote.opening import open_remote

    torch_import.complete()
    return open_remote(name)


_ADDRESSED: dict[str, Callable[[str], Model]] = {ORACLE: _open_oracle, REMOTE: _open_remote}
