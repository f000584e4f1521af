"""Models whose names are addresses: an oracle's file, or a server. Other names are of weights on this machine.

Whoever needs to know what is special about such a model asks `model_address`; nobody else looks at the prefixes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.common import torch_import
from engine.common.names import ORACLE
from engine.common.server_address import REMOTE, destination, server_address

if TYPE_CHECKING:
    from engine.models.base import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """A model that is no weights of this machine."""

    public_name: str
    """Its name for clients of HTTP: no path of this machine, no key."""
    about: str
    """What it is, and `device`, where it runs: for people."""
    device: str
    opened: Callable[[], Model]
    """Opens it. Raises ModelError."""
    files: tuple[Path, ...] = ()
    """The files of this machine that decide what it answers."""
    is_test: bool = False
    """Whether it is there for tests only."""


def model_address(name: str) -> ModelAddress | None:
    """What a model's name says, where it is an address; None for every other name. Opens nothing. Raises ModelError for
    an address that is wrong or unsafe."""
    if name.startswith(ORACLE):
        path = Path(name.removeprefix(ORACLE))
        return ModelAddress(
            public_name=ORACLE.rstrip(":"),
            about=name,
            device="cpu, for the test model",
            opened=lambda: _open_oracle(path),
            files=(path,),
            is_test=True,
        )
    if name.startswith(REMOTE):
        address = server_address(name)
        return ModelAddress(
            public_name=address.model,
            about=f"{address.name}, run by a server",
            device=f"a server's; {destination(name)}",
            opened=lambda: _open_remote(name),
        )
    return None


def open_addressed(name: str) -> Model | None:
    """The model at an address; None where the name is no address. Raises ModelError."""
    address = model_address(name)
    return address and address.opened()


def _open_oracle(path: Path) -> Model:
    from engine.models.oracle.model import read_oracle

    return read_oracle(path)


def _open_remote(name: str) -> Model:
    # HTTP is for those who use it.
    from engine.models.base import check_info, check_prompt
    from engine.models.checkpoints.directory import loading
    from engine.models.remote.loading import open_remote

    torch_import.complete()
    model = open_remote(name)
    with loading(f"The tokenizer of {name}"):
        check_prompt(model)
        check_info(model.info)
    return model
