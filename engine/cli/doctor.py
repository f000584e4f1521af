"""`dg-lsp doctor`: one finding for each subject, ok or with a remedy. No check raises."""

from __future__ import annotations

import json as json_format
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import click
import psutil

from engine.cli.adapters import whether_used
from engine.cli.answers import answer
from engine.cli.engine import ask_status
from engine.cli.options import device_option, json_option, model_option
from engine.common import runtime_paths
from engine.common.errors import EngineError
from engine.common.exits import FAILURE, one_line_errors
from engine.common.names import Device, rooted
from engine.common.processes import working_dir
from engine.common.request import FillRequest
from engine.common.sizes import binary_bytes, decimal_bytes
from engine.common.terminal import shown
from engine.common.wording import counted, wrapped
from engine.models.adapters.metadata import all_adapters, read_metadata
from engine.models.addressed import named
from engine.models.checkpoints.catalog import find
from engine.models.checkpoints.choice import choose
from engine.models.registry import family_named

_REQUEST = FillRequest(prefix="def add(a, b):\n    return ", suffix="\n", language="python")
_SPARE_NBYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    subject: str
    ok: bool
    detail: str
    """What was found."""
    remedy: str = ""
    """What to do where it is not ok."""
    ms: float | None = None
    """How long it took, where that was measured."""


class _Problem(EngineError):
    def __init__(self, detail: str, remedy: str) -> None:
        super().__init__(detail)
        self.remedy = remedy


@click.command()
@model_option
@device_option
@json_option
@one_line_errors()
def doctor(model: str, device: str, json: bool) -> None:
    """Check that everything works. Exits with 1 if something does not."""
    findings: list[Finding] = []
    for finding in examine(model, device):
        findings.append(finding)
        if not json:
            click.echo(wrapped(shown(finding.detail), f"{'ok ' if finding.ok else 'BAD'} {finding.subject:<12} "))
            if not finding.ok:
                click.echo(wrapped(shown(finding.remedy), f"    {'':<12} "))
    well = all(finding.ok for finding in findings)
    if json:
        click.echo(json_format.dumps({"ok": well, "findings": [asdict(finding) for finding in findings]}))
    if not well:
        raise click.exceptions.Exit(FAILURE)


def examine(model: str, device: str) -> Iterator[Finding]:
    """Check what an engine with this model on this device needs."""
    subjects: dict[str, tuple[str, Callable[[], str | Finding]]] = {
        # Each with the subject that it depends on.
        "python": ("", _python),
        "torch": ("", _torch),
        "model": ("torch", lambda: _model(model)),
        "device": ("model", lambda: _device(model, device)),
        "numbers": ("torch", _numbers),
        "4 bit": ("device", lambda: _products(model, device)),
        "memory": ("device", lambda: _memory(model, device)),
        "adapters": ("", _adapters),
        "permissions": ("", _permissions),
        "socket": ("", _socket),
        "editor": ("", _editor),
        "fill": ("model", lambda: _fill(model, device)),
    }
    ill: set[str] = set()
    for subject, (before, look) in subjects.items():
        try:
            if before in ill:
                raise _Problem("not looked at", f"Fix '{before}' first.")
            seen = look()
            yield seen if isinstance(seen, Finding) else Finding(subject=subject, ok=True, detail=seen)
            continue
        except _Problem as problem:
            detail, remedy = str(problem), problem.remedy
        except EngineError as error:
            # The message holds the remedy.
            detail, remedy = "not usable", str(error)
        except Exception as error:  # noqa: BLE001 a check must not end the command
            detail, remedy = f"{type(error).__name__}: {error}", "Install dg-lsp again, or report this."
        ill.add(subject)
        yield Finding(subject=subject, ok=False, detail=detail, remedy=remedy)


def _python() -> str:
    # Not every installer respects the required versions.
    if not (3, 11) <= sys.version_info[:2] < (3, 14):
        raise _Problem(platform.python_version(), "Install dg-lsp with Python 3.11, 3.12 or 3.13.")
    return f"{platform.python_version()}, {sys.executable}"


def _torch() -> str:
    try:
        import torch
    except (ImportError, OSError) as error:
        raise _Problem(f"can't be imported ({error})", "Install torch as https://pytorch.org says.") from None
    built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "for the CPU only"
    if not torch.cuda.is_available() and shutil.which("nvidia-smi"):
        raise _Problem(
            f"{torch.__version__}, {built}, finds no GPU, though the machine has a GPU driver",
            "Install a CUDA build of torch that fits the driver, or use --device cpu.",
        )
    return f"{torch.__version__}, {built}"


def _model(name: str) -> str:
    if about := named(name).about:
        return about
    checkpoint, choice = find(name), choose()
    why = f"; {choice.why}" if choice.name == name else ""
    size = f"{checkpoint.parameters / 1e6:,.1f} M parameters, {decimal_bytes(checkpoint.nbytes)}"
    canvas = ", with a canvas (`fill --canvas`)" if family_named(checkpoint.family).has_canvas(checkpoint) else ""
    return f"{checkpoint.name}, {size}{canvas}{why}"


def _placed(model: str, device: str) -> str:
    from engine.models.checkpoints.placement import place, this_machine

    return "cpu" if named(model).opened else place(find(model), cast(Device, device), this_machine()).device


def _device(model: str, device: str) -> str:
    import torch

    if where := named(model).device:
        return where
    where = _placed(model, device)
    if where.startswith("cuda"):
        return f"{where}, {torch.cuda.get_device_name(where)}"
    return f"cpu, {counted(torch.get_num_threads(), 'thread')} of {counted(os.cpu_count() or 1, 'processor')}"


def _numbers() -> str:
    from engine.models.formats import described

    return f"on the processor {described()}"


def _products(model: str, device: str) -> str:
    from engine.models.quantized.layers import product_ways

    return product_ways(_placed(model, device))


def _memory(model: str, device: str) -> str:
    free = psutil.virtual_memory().available
    if named(model).opened:
        return f"{binary_bytes(free)} free"
    from engine.models.checkpoints.placement import memory_plan, place, this_machine

    checkpoint, machine = find(model), this_machine()
    placement = place(checkpoint, cast(Device, device), machine)
    plan = memory_plan(checkpoint, placement)
    # Weights pass through main memory one tensor at a time; a running engine has them already.
    needed = (plan.total if placement.device == "cpu" else 0) + _SPARE_NBYTES
    if ask_status() is None and free < needed:
        raise _Problem(
            f"{binary_bytes(free)} are free, {binary_bytes(needed)} are needed: {plan.summary()}",
            "Close other programs, or choose a smaller model.",
        )
    there = [f"{binary_bytes(nbytes)} on GPU {index}" for index, nbytes in enumerate(machine.gpus)]
    return f"{plan.summary()}; free: {', '.join([*there, f'{binary_bytes(free)} of main memory'])}"


def _adapters() -> str:
    learnt = [read_metadata(directory) for directory in all_adapters()]
    return "; ".join(f"{each.folder} ({whether_used(each) or 'on'})" for each in learnt) or "none"


def _permissions() -> str:
    for folder in (runtime_paths.make_runtime_dir(), runtime_paths.make_log_dir()):
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise _Problem(f"{folder} can't be written ({error.strerror})", f"Make {folder} writable.") from None
    return f"{runtime_paths.runtime_dir()} and {runtime_paths.log_dir()} are yours"


def _socket() -> str:
    where = "TCP on the loopback interface" if runtime_paths.uses_tcp() else str(runtime_paths.socket_path())
    status = ask_status()
    if status is None:
        return f"{where}, no engine runs"
    goes = named(status.model).destination
    editors = counted(len(status.clients) - 1, "editor")
    return f"{where}, engine {status.pid} with {status.model}, {editors}{goes and f'; {goes}'}"


def _editor() -> str:
    command = shutil.which("dg-lsp")
    if command is None:
        beside = Path(sys.executable).with_name("dg-lsp")
        raise _Problem("dg-lsp is not on the PATH that editors see", f"Add {beside.parent} to it.")
    return f"they start {command}"


def _fill(model: str, device: str) -> Finding:
    status = ask_status()
    served = status is not None and status.model == rooted(model, working_dir())
    answered = answer(_REQUEST, model, None if served else device, engine=served)
    filled, ms = answered.filled, answered.filled.ms
    said = repr(filled.candidates[0].text) if filled.candidates else "nothing"
    loaded = f" after {ms.load:.0f} ms of loading" if ms.load else ""
    steps = counted(filled.steps, "step")
    detail = f"{said} in {ms.total - ms.load:.0f} ms, {steps} on {filled.device}, {answered.source}{loaded}"
    return Finding(subject="fill", ok=True, detail=detail, ms=ms.total - ms.load)
