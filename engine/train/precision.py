"""Where matrices are better multiplied in bfloat16: on GPUs, and on processors that have matrix units for it (AMX)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch


def has_bfloat16_units(device: torch.device) -> bool:
    """Whether products in bfloat16 are several times as fast as in float32 there."""
    if device.type != "cpu":
        return device.type == "cuda"
    # torch before 2.10 can't tell.
    told = cast(Callable[[], Mapping[str, Any]] | None, getattr(torch.cpu, "get_capabilities", None))
    return told is not None and bool(told().get("amx_bf16", False))
