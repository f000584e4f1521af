"""Decides where a model's weights go and in which number format, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import psutil
import torch

from engine.common.errors import ModelError
from engine.common.messages import MemoryPlan
from engine.common.names import Device, check_device
from engine.common.sizes import binary_bytes
from engine.models.checkpoints.directory import Checkpoint, TensorHeader
from engine.models.checkpoints.working import CONTEXT, context_for, cpu_itemsize, planned
from engine.models.formats import formats

GPU_DTYPE = torch.bfloat16


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Free memory in bytes."""

    cpu: int
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    device: str
    """The device of embeddings and ids, as torch names it: "cpu", "cuda:0"."""
    layers: tuple[str, ...]
    """The device of each layer; encoder and decoder share their weights."""
    dtype: torch.dtype
    context: int = CONTEXT
    """Tokens of context that fit."""
    int8: bool = False
    """Whether matrices are kept in 8 bit: a coder's, on a processor with such products."""

    @property
    def split(self) -> bool:
        """Whether some layers are on another device than the embeddings."""
        return any(layer != self.device for layer in self.layers)


def this_machine() -> Machine:
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_available() else range(0)
    return Machine(
        cpu=psutil.virtual_memory().available,
        gpus=tuple(torch.cuda.mem_get_info(gpu)[0] for gpu in gpus),
    )


def place(checkpoint: Checkpoint, device: Device, machine: Machine) -> Placement:
    """Place a model: on a GPU rather than the CPU, on one device rather than several. Raises ModelError, with the
    numbers, when it does not fit."""
    check_device(device)
    check_cuda(device, bool(machine.gpus))
    placement = _on_gpus(checkpoint, machine) if device != "cpu" else None
    if placement is None and device != "cuda":
        placement = _on_cpu(checkpoint, machine)
    if placement is None:
        raise ModelError(_too_big(checkpoint, device, machine))
    return placement


def check_cuda(device: str, is_there: bool) -> None:
    """Raises ModelError where CUDA is asked for and no GPU is there."""
    if device == "cuda" and not is_there:
        raise ModelError("CUDA was asked for, but torch finds no GPU here: use --device cpu, or a CUDA build of torch.")


def _on_cpu(checkpoint: Checkpoint, machine: Machine) -> Placement | None:
    int8 = checkpoint.int8 and formats().int8
    dtype = torch.float32 if int8 or cpu_itemsize(checkpoint.parameters) == 4 else torch.bfloat16
    placement = Placement(device="cpu", layers=("cpu",) * checkpoint.layers, dtype=dtype, int8=int8)
    return placement if memory_plan(checkpoint, placement).total <= machine.cpu else None


def _on_gpus(checkpoint: Checkpoint, machine: Machine) -> Placement | None:
    kept = planned(0, checkpoint.sizes).total
    rooms = {f"cuda:{index}": free - kept for index, free in enumerate(machine.gpus)}
    # The roomiest GPU is filled first, main memory last, as it is the slowest.
    order = sorted(rooms, key=lambda name: -rooms[name])
    layers, rest = _parts(checkpoint, GPU_DTYPE)
    placed = _spread([rest, *layers], {**{name: rooms[name] for name in order}, "cpu": machine.cpu})
    if placed is None or placed[0] == "cpu":
        return None
    weights = rest + sum(layers)
    placement = Placement(device=placed[0], layers=placed[1:], dtype=GPU_DTYPE)
    if placement.split:
        # What is split passes through main memory as a whole while it is loaded.
        return None if weights > machine.cpu else placement
    return replace(placement, context=context_for(checkpoint.sizes, rooms[placed[0]] - weights))


def _spread(parts: Sequence[int], rooms: Mapping[str, int]) -> tuple[str, ...] | None:
    """Parts in order over devices in order, each filled before the next; None where they don't fit."""
    placed: list[str] = []
    devices = iter(rooms.items())
    device, room = next(devices)
    for nbytes in parts:
        while room < nbytes:
            following = next(devices, None)
            if following is None:
                return None
            device, room = following
        room -= nbytes
        placed.append(device)
    return tuple(placed)


def memory_plan(checkpoint: Checkpoint, placement: Placement) -> MemoryPlan:
    """The memory of a placed model, over all its devices."""
    weights = sum(
        tensor.elements
        if in_8_bit(checkpoint, tensor, device, placement.dtype) or (placement.int8 and len(tensor.shape) == 2)
        else tensor.nbytes_in(placement.dtype.itemsize)
        for tensor in checkpoint.tensors
        for device in (placement.device if tensor.layer is None else placement.layers[tensor.layer],)
    )
    cuda = placement.device != "cpu"
    itemsize = placement.dtype.itemsize
    return planned(weights, checkpoint.sizes, itemsize=itemsize, context=placement.context, cuda=cuda)


def in_8_bit(checkpoint: Checkpoint, tensor: TensorHeader, device: str, dtype: torch.dtype) -> bool:
    """Whether a tensor is kept in 8 bit: one stored in full beside weights in 4 bit, on a processor, where it would
    take as long as all of them."""
    return (
        not tensor.in_4_bit and tensor.is_matrix and device == "cpu" and dtype == torch.bfloat16 and checkpoint.in_4_bit
    )


def _parts(checkpoint: Checkpoint, dtype: torch.dtype) -> tuple[list[int], int]:
    """Bytes of each layer, and of all tensors in none."""
    layers = [0] * checkpoint.layers
    rest = 0
    for tensor in checkpoint.tensors:
        if tensor.layer is None:
            rest += tensor.nbytes_in(dtype.itemsize)
        else:
            layers[tensor.layer] += tensor.nbytes_in(dtype.itemsize)
    return layers, rest


def _too_big(checkpoint: Checkpoint, device: Device, machine: Machine) -> str:
    free = [f"{binary_bytes(nbytes)} on GPU {index}" for index, nbytes in enumerate(machine.gpus) if device != "cpu"]
    needed = binary_bytes(checkpoint.nbytes_in(torch.bfloat16.itemsize))
    working = binary_bytes(planned(0, checkpoint.sizes).total)
    work = f", {working} a GPU to work in and room in main memory to load" if free else ""
    there = " and ".join([*free, f"{binary_bytes(machine.cpu)} of main memory"])
    return (
        f"{checkpoint.name} needs {needed}{work}, but {there} are free: close other programs, or use a smaller model."
    )
