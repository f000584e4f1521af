"""What a model's name says: an address, of an oracle's file or a server, or weights on this machine. Nobody else looks
at its prefix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.common import torch_import
from engine.common.names import ORACLE
from engine.common.server_address import REMOTE, server_address

if TYPE_CHECKING:
    from engine.models.base import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """What is known of a model by its name alone."""

    public_name: str
    """Its name for clients of HTTP: no path of this machine, no key."""
    files: Callable[[], Sequence[Path]]
    """The files of this machine that decide what it answers. Raises ModelError."""
    destination: str = ""
    """A sentence that says where text goes that it fills; empty where it stays on the machine."""
    about: str = ""
    """What it is, and `device`, where it runs, for people; empty where its weights are on this machine."""
    device: str = ""
    opened: Callable[[], Model] | None = None
    """Opens it by its address; None: its weights are on this machine. Raises ModelError."""
    is_test: bool = False
    """Whether it is there for tests only."""


def named(name: str) -> NamedModel:
    """What a model's name says. Opens nothing. Raises ModelError for an address that is wrong or unsafe."""
    if name.startswith(ORACLE):
        path = Path(name.removeprefix(ORACLE))
        return NamedModel(
            public_name=ORACLE.rstrip(":"),
            files=lambda: (path,),
            about=name,
            device="cpu, for the test model",
            opened=lambda: _open_oracle(path),
            is_test=True,
        )
    if name.startswith(REMOTE):
        address = server_address(name)
        goes = f"Text around the cursor is sent to {address.url}."
        return NamedModel(
            public_name=address.model,
            files=tuple,
            destination=goes,
            about=f"{address.name}, run by a server",
            device=f"a server's; {goes}",
            opened=lambda: _open_remote(name),
        )
    path = Path(name)
    return NamedModel(public_name=path.name if path.is_absolute() else name, files=lambda: _weights(name))


def open_addressed(name: str) -> Model | None:
    """The model at an address; None where the name is no address. Raises ModelError."""
    opened = named(name).opened
    return opened and opened()


def _weights(name: str) -> list[Path]:
    # Others look at names before they need any of that.
    from engine.models.checkpoints.catalog import find
    from engine.models.checkpoints.pull import PATTERNS

    path = find(name).path
    # Without the model card and plots.
    return sorted({file for pattern in PATTERNS for file in path.glob(pattern)}) if path.is_dir() else [path]


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
