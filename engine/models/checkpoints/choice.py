"""Chooses the model "auto": the best one on this disk that fits the memory and answers in time, else the bundled one.

Times of fills that were measured on this machine count; without them its processor decides. Two processes of one
machine choose alike. Imports no torch.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from engine.common.errors import ModelError
from engine.common.names import AUTO, BUNDLED
from engine.common.peercred import holder
from engine.common.runtime_paths import data_dir, lock_path
from engine.common.sizes import binary_bytes, decimal_bytes
from engine.models.checkpoints.catalog import NotCached, coder_file
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.coders import CODERS, PublishedCoder
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.measured import measured_ms
from engine.models.checkpoints.working import cpu_itemsize, planned

IN_TIME_MS = 1000.0
"""Longest time in milliseconds of a suggestion on a processor."""
_FILL_MS = {"coder-1.5b": (610.0, 880.0), "coder-0.5b": (380.0, 490.0)}
"""Milliseconds of a fill of one line, one key after the last, on two cores: with VNNI, and without.
llama.cpp took that with the same files (2026-11-28), and an engine has to keep up with it. Times measured on this
machine count instead."""
_MEASURED_CORES, _MOST_CORES = 2, 8
"""More cores than that make no single answer faster."""
_SPARE_NBYTES, _SPARE_SHARE = 1 << 30, 0.1
"""Memory left to other programs beside what they have now: so many bytes, and so much of all memory."""
_TOLD_FILE = "told-of-coders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What the choice depends on."""

    free_nbytes: int
    all_nbytes: int
    cores: int
    int8: bool
    """Whether a coder is kept in 8 bits there: on x86-64 with AVX2."""
    vnni: bool
    """Whether it has units for their products."""
    held_nbytes: Callable[[], int] = lambda: 0
    """Memory of an engine that runs, which gives way to the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What "auto" means here."""

    name: str
    why: str
    """The reason, in words."""
    advice: str = ""
    """What would be better, and how to get it; empty: nothing."""


def resolved(name: str, *, beside: bool = False) -> str:
    """The name of a model; "auto" is replaced by the one it stands for. `beside`: an engine that runs stays."""
    if name != AUTO:
        return name
    hardware = this_hardware()
    return choose(replace(hardware, held_nbytes=lambda: 0) if beside else hardware).name


def choose(hardware: Hardware | None = None) -> Choice:
    """The model that "auto" stands for. Never fails: what can't be read is not chosen."""
    here = [coder for coder in CODERS.values() if _is_here(coder)]
    hardware = hardware or this_hardware()
    if not here:
        room = 2 if hardware.int8 else 4
        # A file of 4 bits a weight becomes 8 bits, else 16.
        fits = (coder for coder in CODERS.values() if not _against(coder.name, room * coder.nbytes, hardware))
        best = next(fits, None)
        return Choice(
            name=BUNDLED,
            why="no coder is on this disk",
            advice=f"`dg-lsp pull {best.name}` ({decimal_bytes(best.nbytes)}, once) brings a model that is trained on "
            "code: of HumanEval's single lines it fills nine in ten, and the bundled one two in ten."
            if best
            else "",
        )
    refused: list[str] = []
    for coder in here:
        try:
            checkpoint = read_checkpoint(coder_file(coder), coder.name)
        except ModelError as error:
            refused.append(str(error).rstrip("."))
            continue
        if against := _against(coder.name, needed_nbytes(checkpoint, hardware), hardware):
            refused.append(f"{coder.name} {against}")
            continue
        told = "measured here" if measured_ms(coder.name) else "by its processor, not measured yet"
        why = f"the best on this disk that fits: about {fill_ms(coder.name, hardware):.0f} ms a suggestion ({told})"
        return Choice(name=coder.name, why="; ".join([why, *refused]))
    return Choice(name=BUNDLED, why="; ".join(refused))


def this_hardware() -> Hardware:
    memory, (int8, vnni) = psutil.virtual_memory(), _eight_bits()
    return Hardware(
        free_nbytes=memory.available,
        all_nbytes=memory.total,
        cores=psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
        int8=int8,
        vnni=vnni,
        held_nbytes=_engine_nbytes,
    )


def fill_ms(name: str, hardware: Hardware) -> float:
    """The time of a suggestion in milliseconds: measured here, or on a machine like this one."""
    if (measured := measured_ms(name)) is not None:
        return measured
    with_units, without = _FILL_MS[name]
    return (with_units if hardware.vnni else without) * _MEASURED_CORES / min(hardware.cores, _MOST_CORES)


def needed_nbytes(checkpoint: Checkpoint, hardware: Hardware) -> int:
    """The memory that a checkpoint takes on a processor."""
    itemsize = 4 if hardware.int8 else cpu_itemsize(checkpoint.parameters)
    weights = sum(
        (1 if hardware.int8 and len(tensor.shape) == 2 else itemsize) * tensor.elements for tensor in checkpoint.tensors
    )
    return planned(weights, checkpoint.sizes, cuda=False).total


def tell_once(choice: Choice) -> str:
    """The advice, at the first call on this machine; afterwards an empty text."""
    told = data_dir() / _TOLD_FILE
    if not choice.advice or told.exists():
        return ""
    try:
        told.parent.mkdir(parents=True, exist_ok=True)
        told.touch()
    except OSError:  # rather never than each time
        return ""
    return choice.advice


def _is_here(coder: PublishedCoder) -> bool:
    try:
        coder_file(coder)
    except NotCached:
        return False
    return True


def _against(name: str, needed: int, hardware: Hardware) -> str:
    """Why a coder is not for this machine; empty: it is."""
    spare, free = _SPARE_NBYTES + int(_SPARE_SHARE * hardware.all_nbytes), hardware.free_nbytes
    if needed + spare > free and needed + spare > (free := free + hardware.held_nbytes()):
        return (
            f"needs {binary_bytes(needed)} and leaves {binary_bytes(spare)} to other programs, but "
            f"{binary_bytes(free)} are free"
        )
    took = fill_ms(name, hardware)
    return f"would take about {took:.0f} ms a suggestion, and {IN_TIME_MS:.0f} are in time" if took > IN_TIME_MS else ""


def _engine_nbytes() -> int:
    engine = holder(lock_path())
    if engine is None or not engine.pid:
        return 0
    try:
        return psutil.Process(engine.pid).memory_info().rss
    except psutil.Error:
        return 0


def _eight_bits(machine: str = "", cpuinfo: Sequence[str] | None = None) -> tuple[bool, bool]:
    """Whether the processor has products of 8 bits, and units for them; see `formats`, which needs torch."""
    if (machine or platform.machine()).lower() not in ("x86_64", "amd64"):
        return False, False
    try:
        lines = cpuinfo or Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not on Linux: as one that has no units
        return True, False
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return "avx2" in flags, "avx512_vnni" in flags or "avx_vnni" in flags
