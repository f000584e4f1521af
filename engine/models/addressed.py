"""Models whose names are addresses: an oracle's file, or a server. Other names are of weights on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.common import torch_import
from engine.common.names import ORACLE
from engine.common.server_address import REMOTE
from engine.models.base import Model, check_info, check_prompt
from engine.models.checkpoints.directory import reading


def open_addressed(name: str) -> Model | None:
    """The model at an address; None where the name is no address. Raises ModelError."""
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
    model = open_remote(name)
    with reading(f"The tokenizer of {name}"):
        check_prompt(model)
        check_info(model.info)
    return model


_ADDRESSED: dict[str, Callable[[str], Model]] = {ORACLE: _open_oracle, REMOTE: _open_remote}
