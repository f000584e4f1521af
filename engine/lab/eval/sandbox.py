"""Run code that nobody has read: in processes of its own, without network, in a folder of its own, within limits.

With `namespaces` (Linux, where the kernel lets the user make them) the code sees Python's own files and an empty folder
in memory, no network, and no process but its own. With `guards` (elsewhere) the interpreter refuses network, other
processes and writing outside the folder; that stops accidents and the tricks of cheats, but it is no wall against
somebody who attacks the interpreter. Processor time, memory, file size, open files and the time on the wall are limited
in both; so is the number of processes, which `guards` keep at one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

from engine.common.errors import EngineError
from engine.lab.eval.inside.confine import SandboxLimits

_MAIN = Path(__file__).parent / "inside" / "__main__.py"
_GRACE_S = 5.0
"""Seconds that a sandbox has to end itself when its time is up."""
_PULSE_S = 0.1
"""Seconds between two looks whether a sandbox is still wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """Whether code does what it should; `reason` says why not."""

    passed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOutput:
    code: int
    """Exit status; negative or above 128: a signal."""
    output: str


def run_test(
    source: str,
    test: str,
    entry_point: str,
    limits: SandboxLimits | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> SandboxResult:
    """`check(entry_point)` of `test` against `source`, each in a sandbox of its own; both end once `should_stop`.

    The test runs where the solution can't reach it, and gets plain values only, so nothing that a solution prints,
    returns or does to its interpreter makes it pass but right answers. Raises EngineError where no sandbox can start.
    """
    limits = limits or standard_limits()
    task = {"source": source, "test": test, "entry_point": entry_point}
    with ExitStack() as stack:
        verdict = stack.enter_context(tempfile.TemporaryFile())
        given = stack.enter_context(_file(json.dumps(task)))
        questions, questioned = _pipe(stack)
        answered, answers = _pipe(stack)
        solution = stack.enter_context(_started("solution", limits, stdin=questions, stdout=answers))
        tester = stack.enter_context(
            _started("tester", limits, stdout=verdict, fds=(given.fileno(), questioned.fileno(), answered.fileno()))
        )
        # Whoever is left alone must read the end of the pipe.
        for end in (questions, questioned, answered, answers):
            end.close()
        _wait(tester, limits, should_stop)
        _kill(solution)
        verdict.seek(0)
        try:
            return SandboxResult(**json.loads(verdict.read(limits.file_nbytes)))
        except (ValueError, TypeError):
            return SandboxResult(passed=False, reason="the test was ended before its verdict")


def run_program(source: str, limits: SandboxLimits) -> ProgramOutput:
    """Run a Python program without input. Raises EngineError where no sandbox can be started."""
    return _ran("program", source, limits)


def run_command(command: Sequence[str], files: Mapping[str, bytes], limits: SandboxLimits) -> ProgramOutput:
    """Run a command in a folder of its own with these files; only `namespaces` confine it. Raises EngineError where no
    sandbox can be started."""
    given = {"command": list(command), "files": {name: data.hex() for name, data in files.items()}}
    return _ran("command", json.dumps(given), limits)


def _ran(role: str, told: str, limits: SandboxLimits) -> ProgramOutput:
    with (
        tempfile.TemporaryFile() as printed,
        _file(told) as given,
        _started(role, limits, stdout=printed, fds=(given.fileno(),)) as process,
    ):
        code = _wait(process, limits)
        printed.seek(0)
        return ProgramOutput(code=code, output=printed.read(limits.file_nbytes).decode(errors="replace"))


@cache
def standard_limits() -> SandboxLimits:
    """Limits with the strongest confinement that this machine has. Raises EngineError where there is none."""
    for level in ("namespaces", "guards"):
        limits = SandboxLimits(level=level)
        if run_program("print(6 * 7)", limits) == ProgramOutput(code=0, output="42\n"):
            return limits
    raise EngineError("No sandbox can be started here, so solutions can't be tested: use Linux or macOS.")


@contextmanager
def _started(
    role: str,
    limits: SandboxLimits,
    *,
    stdout: IO[bytes],
    stdin: IO[Any] | int = subprocess.DEVNULL,
    fds: Sequence[int] = (),
) -> Generator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryDirectory(prefix="dg-lsp-sandbox-") as folder:
        own_limits = json.dumps(asdict(replace(limits, folder=folder)))
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_MAIN), role, own_limits, *map(str, fds)],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            # None of the user's, which may hold keys; hashes as they come from one seed, so that a result repeats.
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"},
            pass_fds=fds,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            _kill(process)


def _wait(
    process: subprocess.Popen[bytes], limits: SandboxLimits, should_stop: Callable[[], bool] = lambda: False
) -> int:
    ends = time.monotonic() + limits.wall_s + _GRACE_S
    while time.monotonic() < ends and not should_stop():
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_PULSE_S)
    _kill(process)
    return process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End its whole session: with namespaces the watching process ends what it watches, with guards there are no
    others."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _file(text: str) -> Generator[IO[str]]:
    # Half a surrogate pair in a fill is no reason to fail here.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.seek(0)
        yield file


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    read, write = os.pipe()
    return stack.enter_context(os.fdopen(read, "rb")), stack.enter_context(os.fdopen(write, "wb", buffering=0))
