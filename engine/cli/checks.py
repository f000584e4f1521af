"""Is everything in place? One finding a subject, each fine or with the way out; none raises."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import psutil

from engine.checkpoints.directory import Checkpoint
from engine.core import runtime_paths
from engine.core.errors import EngineError
from engine.core.names import ORACLE, Device, rooted
from engine.core.request import Filled, FillRequest
from engine.core.sizes import binary_bytes, decimal_bytes
from engine.ipc.client import ask
from engine.ipc.messages import EngineStatus, Fill, FillReply, StatusQuery, StatusReply
from engine.loader.catalog import find

_REQUEST = FillRequest(prefix="def add(a, b):\n    return ", suffix="\n", language="python")
_FILL_S = 300.0
_EDITOR_S = 10.0
_SPARE_NBYTES = 1 << 30
_EDITORS: dict[str, tuple[int, ...]] = {
    "nvim": (0, 11),
    "code": (1, 105),
    "codium": (1, 105),
    "emacs": (28, 1),
    "hx": (),
    "zed": (),
}
"""Known editors and the oldest version that the clients in `editors/` run in; empty: none is known."""
_NEEDS = {"model": "torch", "device": "model", "memory": "model", "fill": "model"}
"""What can't be looked at before something else is right."""
_PYTHONS = ((3, 11), (3, 14))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """All is well."""

    detail: str
    ms: float | None = None


class _Complaint(Exception):
    """Something is wrong, and this helps."""

    def __init__(self, detail: str, remedy: str) -> None:
        super().__init__(detail)
        self.remedy = remedy


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
            finding = _skipped(subject, cause) if cause in ill else _examined(subject, look)
            if not finding.ok:
                ill.add(subject)
            tell(finding)
        return not ill

    def _device(self) -> _Seen:
        import torch

        from engine.checkpoints.placement import place, this_machine

        if self._is_oracle:
            return _Seen(detail="cpu, for the test model")
        placement = place(self._checkpoint(), cast(Device, self.device), this_machine())
        if placement.device.startswith("cuda"):
            return _Seen(detail=f"{placement.device}, {torch.cuda.get_device_name(placement.device)}")
        return _Seen(detail=f"cpu, {torch.get_num_threads()} threads of {os.cpu_count()} processors")

    def _memory(self) -> _Seen:
        free = psutil.virtual_memory().available
        needed = 0 if self._is_oracle else self._checkpoint().nbytes
        if self._status() is None and free < needed + _SPARE_NBYTES:
            raise _Complaint(
                f"{binary_bytes(free)} are free, {binary_bytes(needed + _SPARE_NBYTES)} are needed",
                "Close other programs, or choose a smaller model.",
            )
        return _Seen(detail=f"{binary_bytes(free)} free")

    def _model(self) -> _Seen:
        if self._is_oracle:
            return _Seen(detail=self.model)
        checkpoint = self._checkpoint()
        size = f"{checkpoint.parameters / 1e6:,.1f} M parameters, {decimal_bytes(checkpoint.nbytes)}"
        return _Seen(detail=f"{checkpoint.name}, {size}")

    def _fill(self) -> _Seen:
        status = self._status()
        if status is not None and status.model == rooted(self.model, Path.cwd()):
            reply = ask(Fill(id=1, request=_REQUEST), _FILL_S)
            assert isinstance(reply, FillReply)
            return _told(reply.filled, "by the running engine")
        from engine.loader.loading import load

        infiller = load(self.model, cast(Device, self.device))
        return _told(infiller.answer(_REQUEST), f"after {infiller.load_ms:.0f} ms of loading")

    @property
    def _is_oracle(self) -> bool:
        return self.model.startswith(ORACLE)

    def _checkpoint(self) -> Checkpoint:
        return find(self.model)

    def _status(self) -> EngineStatus | None:
        report = ask(StatusQuery(id=1))
        return report.status if isinstance(report, StatusReply) else None


def _skipped(subject: str, cause: str | None) -> Finding:
    return Finding(subject=subject, ok=False, detail="not looked at", remedy=f"Put right what is said of {cause}.")


def _examined(subject: str, look: Callable[[], _Seen]) -> Finding:
    try:
        seen = look()
        return Finding(subject=subject, ok=True, detail=seen.detail, ms=seen.ms)
    except _Complaint as complaint:
        return Finding(subject=subject, ok=False, detail=str(complaint), remedy=complaint.remedy)
    except EngineError as error:
        # Such a message is a sentence that holds the way out.
        return Finding(subject=subject, ok=False, detail="not usable", remedy=str(error))
    except Exception as error:  # noqa: BLE001 a doctor that falls ill helps nobody
        detail = f"{type(error).__name__}: {error}"
        return Finding(subject=subject, ok=False, detail=detail, remedy="Install dg-lsp again, or report this.")


def _python() -> _Seen:
    lowest, beyond = _PYTHONS
    if not lowest <= sys.version_info[:2] < beyond:
        raise _Complaint(platform.python_version(), "Install dg-lsp with Python 3.11, 3.12 or 3.13.")
    return _Seen(detail=f"{platform.python_version()}, {sys.executable}")


def _torch() -> _Seen:
    try:
        import torch
    except (ImportError, OSError) as error:
        raise _Complaint(f"can't be imported ({error})", "Install torch as https://pytorch.org says.") from None
    built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "for the CPU only"
    if not torch.cuda.is_available() and shutil.which("nvidia-smi"):
        raise _Complaint(
            f"{torch.__version__}, {built}, finds no GPU, but the machine has a driver for one",
            "Install a CUDA build of torch that fits the driver, or use --device cpu.",
        )
    return _Seen(detail=f"{torch.__version__}, {built}")


def _permissions() -> _Seen:
    for folder in (runtime_paths.make_runtime_dir(), runtime_paths.make_log_dir()):
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise _Complaint(f"{folder} can't be written ({error.strerror})", f"Make {folder} writable.") from None
    return _Seen(detail=f"{runtime_paths.runtime_dir()} and {runtime_paths.log_dir()} are yours")


def _socket() -> _Seen:
    where = "TCP on the loopback interface" if runtime_paths.uses_tcp() else str(runtime_paths.socket_path())
    report = ask(StatusQuery(id=1))
    if not isinstance(report, StatusReply):
        return _Seen(detail=f"{where}, no engine runs")
    status = report.status
    return _Seen(detail=f"{where}, engine {status.pid} with {status.model}, {len(status.clients) - 1} editors")


def _editor() -> _Seen:
    command = shutil.which("dg-lsp")
    if command is None:
        beside = Path(sys.executable).with_name("dg-lsp")
        raise _Complaint("dg-lsp is not on the PATH that editors see", f"Add {beside.parent} to it.")
    versions = {name: _version(path) for name in _EDITORS if (path := shutil.which(name))}
    old = {name for name, version in versions.items() if _is_older(version, _EDITORS[name])}
    needed = {name: f"{'.'.join(map(str, _EDITORS[name]))} or newer" for name in old}
    found = ", ".join(
        f"{name} {version}".strip()
        + (f" (too old for dg-lsp's client, which needs {needed[name]})" if name in old else "")
        for name, version in versions.items()
    )
    # One that is old may lie there unused, as long as there is another.
    if old and len(old) == len(versions):
        updates = ", ".join(f"{name} to {needed[name]}" for name in versions)
        raise _Complaint(found, f"Update {updates}.")
    return _Seen(detail=f"they start {command}; on this machine: {found or 'none of those known'}")


def _is_older(version: str, lowest: tuple[int, ...]) -> bool:
    """Whether a version is below `lowest`; what can't be read is not."""
    numbers = re.search(r"\d+(?:\.\d+)*", version)
    return bool(numbers) and tuple(map(int, numbers[0].split("."))) < lowest


def _version(path: str) -> str:
    try:
        run = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_EDITOR_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = run.stdout.split("\n", 1)[0].split()
    return next((word for word in words if any(character.isdigit() for character in word)), "")


def _told(filled: Filled, how: str) -> _Seen:
    answer = repr(filled.candidates[0].text) if filled.candidates else "nothing"
    ms = filled.ms.total - filled.ms.load
    return _Seen(detail=f"{answer} in {ms:.0f} ms, {filled.steps} steps on {filled.device}, {how}", ms=ms)
