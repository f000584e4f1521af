"""Random weights in a given shape, whatever the family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil
import torch
from accelerate import init_empty_weights
from torch import nn
from transformers.initialization import no_init_weights

from engine.checkpoints.placement import GPU_DTYPE, cpu_dtype
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


def random_module(
    shape: str,
    device: Device,
    seed: int,
    make: Callable[[], Any],
    owner: Callable[[Any], nn.Module] = lambda module: module,
) -> Any:
    """What `make` builds, with random matrices; `owner`: the part to whose weights all others are tied.

    Raises ModelError for an unknown device, a GPU where there is none, or too little memory.
    """
    place = _place(device)
    with init_empty_weights(include_buffers=False), no_init_weights():
        module = make()
    module.tie_weights()
    size = sum(parameter.numel() for parameter in module.parameters())
    dtype = cpu_dtype(size) if place == "cpu" else GPU_DTYPE
    _check_room(shape, size * dtype.itemsize, place)
    for part in owner(module).modules():
        for name, empty in list(part.named_parameters(recurse=False)):
            setattr(part, name, nn.Parameter(torch.empty_like(empty, device=place, dtype=dtype)))
    module.tie_weights()
    module.to(place, dtype)
    _randomise(module, seed)
    return module.eval()


def shared_facts(shape: str, module: nn.Module) -> dict[str, Any]:
    """What the facts of all random models say in the same way."""
    some = next(module.parameters())
    return {
        "name": f"random {shape}",
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
        "device": str(some.device),
        "dtype": str(some.dtype).removeprefix("torch."),
        "pad_id": 0,
    }


def _place(device: Device) -> str:
    check_device(device)
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return "cpu"
    if not torch.cuda.is_available():
        raise ModelError("CUDA was asked for, but torch finds no GPU here: use --device cpu, or a CUDA build of torch.")
    return "cuda:0"


def _check_room(shape: str, nbytes: int, place: str) -> None:
    free = torch.cuda.mem_get_info()[0] if place != "cpu" else psutil.virtual_memory().available
    if nbytes + BASE_NBYTES > free:
        raise ModelError(
            f"The shape {shape} needs {binary_bytes(nbytes + BASE_NBYTES)} while it is built, but "
            f"{binary_bytes(free)} are free: use fewer layers, or a small shape."
        )


def _randomise(module: nn.Module, seed: int) -> None:
    """Matrices become noise, norms ones, biases zeros."""
    block = torch.randn(_BLOCK, generator=torch.Generator().manual_seed(seed)) * _SCALE
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(False)
        if parameter.dim() == 1:
            parameter.fill_(0.0 if name.endswith(".bias") else 1.0)
            continue
        block = block.to(parameter.device, parameter.dtype)
        flat = parameter.view(-1)
        whole = len(flat) // _BLOCK * _BLOCK
        flat[:whole].view(-1, _BLOCK).copy_(block)
        flat[whole:] = block[: len(flat) - whole]
