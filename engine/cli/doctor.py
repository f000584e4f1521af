"""`dg-lsp doctor`: is everything in place? One finding a subject, each ok or with the remedy; none raises."""

from __future__ import annotations

import json as json_format
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, cast

import psutil
import typer

from engine.cli.options import DeviceName, ModelName
from engine.core import runtime_paths
from engine.core.errors import EngineError
from engine.core.exits import FAILURE, one_line_errors
from engine.core.names import BUNDLED, ORACLE, Device, rooted
from engine.core.request import Filled, FillRequest
from engine.core.sizes import binary_bytes, decimal_bytes
from engine.ipc.client import ask
from engine.ipc.messages import EngineStatus, Fill, FillReply, StatusQuery, StatusReply
from engine.loader.catalog import find

_REQUEST = FillRequest(prefix="def add(a, b):\n    return ", suffix="\n", language="python")
_FILL_S = 300.0
_SPARE_NBYTES = 1 << 30
_NEEDS = {"model": "torch", "device": "model", "memory": "model", "fill": "model"}
"""What can't be looked at before something else is right."""
_PYTHONS = ((3, 11), (3, 14))

_Seen = str | tuple[str, float]
"""All is well: what is there, and how many milliseconds it took, where that is what was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found about one subject."""

    subject: str
    ok: bool
    detail: str
    """What is there, or what is wrong."""
    remedy: str = ""
    """What to do, where it is not ok."""
    ms: float | None = None
    """How long it took, where that is what was looked at."""


class _Problem(Exception):
    """Something is wrong, and this helps."""

    def __init__(self, detail: str, remedy: str) -> None:
        super().__init__(detail)
        self.remedy = remedy


@one_line_errors()
def doctor(
    model: ModelName = BUNDLED,
    device: DeviceName = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check that everything is in place; exits with 1 where something is not."""
    findings: list[Finding] = []

    def tell(finding: Finding) -> None:
        findings.append(finding)
        if not json:
            typer.echo(f"{'ok ' if finding.ok else 'BAD'} {finding.subject:<12} {finding.detail}")
            if not finding.ok:
                typer.echo(f"    {'':<12} {finding.remedy}")

    well = Doctor(model=model, device=device).examine(tell)
    if json:
        typer.echo(json_format.dumps({"ok": well, "findings": [asdict(finding) for finding in findings]}))
    if not well:
        raise typer.Exit(FAILURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Looks at what an engine with this model on this device needs."""

    model: str
    device: str

    def examine(self, tell: Callable[[Finding], None]) -> bool:
        """Tell each finding as soon as it is there; whether all is well."""
        subjects: dict[str, Callable[[], _Seen]] = {
            "python": _python,
            "torch": _torch,
            "model": self._model,
            "device": self._device,
            "memory": self._memory,
            "permissions": _permissions,
            "socket": _socket,
            "editor": _editor,
            "fill": self._fill,
        }
        ill: set[str] = set()
        for subject, look in subjects.items():
            cause = _NEEDS.get(subject)
            if cause in ill:
                remedy = f"Put right what is said of {cause}."
                finding = Finding(subject=subject, ok=False, detail="not looked at", remedy=remedy)
            else:
                finding = _examined(subject, look)
            if not finding.ok:
                ill.add(subject)
            tell(finding)
        return not ill

    def _model(self) -> _Seen:
        if self._is_oracle:
            return self.model
        checkpoint = find(self.model)
        size = f"{checkpoint.parameters / 1e6:,.1f} M parameters, {decimal_bytes(checkpoint.nbytes)}"
        return f"{checkpoint.name}, {size}"

    def _device(self) -> _Seen:
        import torch

        from engine.checkpoints.placement import place, this_machine

        if self._is_oracle:
            return "cpu, for the test model"
        placement = place(find(self.model), cast(Device, self.device), this_machine())
        if placement.device.startswith("cuda"):
            return f"{placement.device}, {torch.cuda.get_device_name(placement.device)}"
        return f"cpu, {torch.get_num_threads()} threads of {os.cpu_count()} processors"

    def _memory(self) -> _Seen:
        free = psutil.virtual_memory().available
        needed = (0 if self._is_oracle else find(self.model).nbytes) + _SPARE_NBYTES
        if _status() is None and free < needed:
            raise _Problem(
                f"{binary_bytes(free)} are free, {binary_bytes(needed)} are needed",
                "Close other programs, or choose a smaller model.",
            )
        return f"{binary_bytes(free)} free"

    def _fill(self) -> _Seen:
        status = _status()
        if status is not None and status.model == rooted(self.model, Path.cwd()):
            reply = ask(Fill(id=1, request=_REQUEST), _FILL_S)
            assert isinstance(reply, FillReply)
            return _timed(reply.filled, "by the running engine")
        from engine.loader.loading import load

        infiller = load(self.model, cast(Device, self.device))
        return _timed(infiller.answer(_REQUEST), f"after {infiller.load_ms:.0f} ms of loading")

    @property
    def _is_oracle(self) -> bool:
        return self.model.startswith(ORACLE)


def _examined(subject: str, look: Callable[[], _Seen]) -> Finding:
    try:
        seen = look()
    except _Problem as problem:
        return Finding(subject=subject, ok=False, detail=str(problem), remedy=problem.remedy)
    except EngineError as error:
        # Such a message is a sentence that holds the way out.
        return Finding(subject=subject, ok=False, detail="not usable", remedy=str(error))
    except Exception as error:  # noqa: BLE001 a doctor that falls ill helps nobody
        detail = f"{type(error).__name__}: {error}"
        return Finding(subject=subject, ok=False, detail=detail, remedy="Install dg-lsp again, or report this.")
    detail, ms = seen if isinstance(seen, tuple) else (seen, None)
    return Finding(subject=subject, ok=True, detail=detail, ms=ms)


def _python() -> _Seen:
    lowest, beyond = _PYTHONS
    if not lowest <= sys.version_info[:2] < beyond:
        raise _Problem(platform.python_version(), "Install dg-lsp with Python 3.11, 3.12 or 3.13.")
    return f"{platform.python_version()}, {sys.executable}"


def _torch() -> _Seen:
    try:
        import torch
    except (ImportError, OSError) as error:
        raise _Problem(f"can't be imported ({error})", "Install torch as https://pytorch.org says.") from None
    built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "for the CPU only"
    if not torch.cuda.is_available() and shutil.which("nvidia-smi"):
        raise _Problem(
            f"{torch.__version__}, {built}, finds no GPU, but the machine has a driver for one",
            "Install a CUDA build of torch that fits the driver, or use --device cpu.",
        )
    return f"{torch.__version__}, {built}"


def _permissions() -> _Seen:
    for folder in (runtime_paths.make_runtime_dir(), runtime_paths.make_log_dir()):
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise _Problem(f"{folder} can't be written ({error.strerror})", f"Make {folder} writable.") from None
    return f"{runtime_paths.runtime_dir()} and {runtime_paths.log_dir()} are yours"


def _socket() -> _Seen:
    where = "TCP on the loopback interface" if runtime_paths.uses_tcp() else str(runtime_paths.socket_path())
    status = _status()
    if status is None:
        return f"{where}, no engine runs"
    return f"{where}, engine {status.pid} with {status.model}, {len(status.clients) - 1} editors"


def _editor() -> _Seen:
    command = shutil.which("dg-lsp")
    if command is None:
        beside = Path(sys.executable).with_name("dg-lsp")
        raise _Problem("dg-lsp is not on the PATH that editors see", f"Add {beside.parent} to it.")
    return f"they start {command}"


def _status() -> EngineStatus | None:
    report = ask(StatusQuery(id=1))
    return report.status if isinstance(report, StatusReply) else None


def _timed(filled: Filled, how: str) -> tuple[str, float]:
    answer = repr(filled.candidates[0].text) if filled.candidates else "nothing"
    ms = filled.ms.total - filled.ms.load
    return f"{answer} in {ms:.0f} ms, {filled.steps} steps on {filled.device}, {how}", ms
