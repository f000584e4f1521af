"""Where a model may be asked to run."""

from __future__ import annotations

from typing import Literal, get_args

from engine.core.errors import ModelError

Device = Literal["auto", "cpu", "cuda"]


def check_device(name: str) -> None:
    """Raises ModelError where it is none of `Device`."""
    if name not in get_args(Device):
        raise ModelError(f"There is no device {name!r}: use auto, cpu or cuda.")
