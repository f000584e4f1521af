"""Random weights for a shape: what the families' models of random weights share."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from torch import Tensor
from transformers.initialization import no_init_weights

from engine.checkpoints.working import BASE_NBYTES
from engine.core.errors import BadInput, ModelError
from engine.core.names import Device, check_device
from engine.core.sizes import binary_bytes

_BLOCK = 1 << 20
"""Random numbers that are drawn; the weights repeat them, as drawing billions takes minutes."""
_SCALE = 0.02


def layers_asked(shape: str, most: int) -> int:
    """N of a shape named "...=N". Raises BadInput where it is no number from 1 to `most`."""
    name, _, number = shape.partition("=")
    if not number.isdecimal() or not 1 <= int(number) <= most:
        raise BadInput(f"There is no shape {shape}: use {name}=N with N from 1 to {most}.")
    return int(number)


def place_of(device: Device) -> str:
    """Where to build, as torch names it. Raises ModelError for an unknown device, or a GPU where there is none."""
    check_device(device)
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return "cpu"
    if not torch.cuda.is_available():
        raise ModelError("CUDA was asked for, but torch finds no GPU here: use --device cpu, or a CUDA build of torch.")
    return "cuda:0"


def check_room(shape: str, nbytes: int, place: str) -> None:
    """Raises ModelError where `nbytes` of weights are too many."""
    free = torch.cuda.mem_get_info()[0] if place != "cpu" else psutil.virtual_memory().available
    if nbytes + BASE_NBYTES > free:
        raise ModelError(
            f"The shape {shape} needs {binary_bytes(nbytes + BASE_NBYTES)} while it is built, but "
            f"{binary_bytes(free)} are free: use fewer layers, or a small shape."
        )


@contextmanager
def made_in(dtype: torch.dtype, place: str) -> Generator[None]:
    """Modules made within have weights of this format there, whose values mean nothing yet."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(place), no_init_weights():
            yield
    finally:
        torch.set_default_dtype(before)


def randomise(module: Any, seed: int) -> None:
    """Matrices become noise, norms ones, biases zeros."""
    generator = torch.Generator().manual_seed(seed)
    block = torch.randn(_BLOCK, generator=generator) * _SCALE
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(False)
        if parameter.dim() == 1:
            parameter.fill_(0.0 if name.endswith(".bias") else 1.0)
        else:
            block = block.to(parameter.device, parameter.dtype)
            _repeat(block, parameter.view(-1))


def _repeat(block: Tensor, flat: Tensor) -> None:
    whole = len(flat) // len(block) * len(block)
    flat[:whole].view(-1, len(block)).copy_(block)
    flat[whole:] = block[: len(flat) - whole]
