"""Names of models and devices; what names in code are made of."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from engine.common.errors import ModelError

Device = Literal["auto", "cpu", "cuda"]
"""The devices that may be requested."""
BUNDLED = "bundled"
AUTO = "auto"
"""The best model on this machine's disk: see engine.models.checkpoints.choice."""
ORACLE = "oracle:"
"""Prefix of a test model's name: see engine.models.oracle.model."""


def is_name_character(character: str) -> bool:
    """Whether names in code may have this character."""
    return character.isalnum() or character == "_"


def rooted(name: str, folder: Path) -> str:
    """A model's name independent of the working directory: the path in `folder` if it exists there."""
    prefix, path = (ORACLE, name.removeprefix(ORACLE)) if name.startswith(ORACLE) else ("", name)
    there = folder / path
    if path in ("", AUTO, BUNDLED) or Path(path).is_absolute():
        return name
    # A name may be too long for a file, or be of what nobody may look at.
    with suppress(OSError):
        return f"{prefix}{there}" if (there.is_file() if prefix or path.endswith(".gguf") else there.is_dir()) else name
    return name


def check_device(name: str) -> None:
    """Check a device's name. Raises ModelError where it is not one of `Device`."""
    if name not in get_args(Device):
        raise ModelError(f"There is no device {name!r}: use auto, cpu or cuda.")
