"""Starts an engine that outlives its starter. Imports next to nothing, as an editor waits for this."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from engine.common.address import find_engine
from engine.common.errors import BadInput, EngineError
from engine.common.exits import BAD_INPUT
from engine.common.processes import neutral_dir, python_module
from engine.common.runtime_paths import log_dir, make_runtime_dir, runtime_dir_usable

if TYPE_CHECKING:
    from engine.common.messages import Welcome
    from engine.server.forked import ForkedEngine

    EngineProcess = subprocess.Popen[bytes] | ForkedEngine

_START_S = 30.0
_LOSER_S = 10.0
_POLL_S = 0.02
_CREATION_FLAGS = 0
if sys.platform == "win32":
    _CREATION_FLAGS = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP


def start_detached(options: str) -> bool:
    """Start an engine in the background and wait until it answers; False where one runs already. `options`: JSON, see
    engine.server.settings. Raises EngineError."""
    return start(lambda said: spawned(options, said)) is not None


def start(begin: Callable[[IO[bytes]], EngineProcess]) -> EngineProcess | None:
    """Start an engine by `begin` and wait until it answers; returns its process, or None if one runs already. `begin`
    is given the file for the engine's standard error."""
    # What the user must put right is said before there is a process that could come to life later.
    folder = make_runtime_dir()
    if _welcome(_START_S):
        return None
    # A file without a name instead of a pipe: what the engine says later, when nobody reads, must not break it.
    with contextlib.ExitStack() as stack:
        with runtime_dir_usable():
            said = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        try:
            process = begin(said)
        except OSError as error:
            raise EngineError(f"The engine can't be started ({error}); run `dg-lsp doctor`.") from None
        try:
            return process if _wait_for_answer(process, said) else None
        except BaseException:  # at Ctrl-C, too, or it might come up with nobody there
            process.kill()
            process.wait()
            raise


def spawned(options: str, said: IO[bytes]) -> subprocess.Popen[bytes]:
    """An engine's process that outlives this one."""
    return subprocess.Popen(
        [*python_module("engine.server"), options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        cwd=neutral_dir(),
        # On Windows the flags make it outlive the console, elsewhere the session of its own does.
        start_new_session=True,
        creationflags=_CREATION_FLAGS,
    )


def _wait_for_answer(process: EngineProcess, said: IO[bytes]) -> bool:
    """Whether the engine that answers is this process."""
    ends = time.monotonic() + _START_S
    code = None
    while not (answer := _welcome(max(ends - time.monotonic(), _POLL_S))):
        if code == 0 and find_engine() is None:
            raise EngineError("The engine gave way to another one, which is gone now: try again.")
        if code := process.poll():
            said.seek(0)
            raise _last_words(said.read(), code)
        if time.monotonic() > ends:
            log = log_dir() / "engine.log"
            raise EngineError(
                f"The engine did not answer within {_START_S:g} s: see {log}, or run `dg-lsp engine restart`."
            )
        time.sleep(_POLL_S)
    if answer.pid != process.pid:
        # Another starter was first. Ours will see that and end; unwatched, it might come up after the other is stopped.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOSER_S)
    return answer.pid == process.pid


def _last_words(said: bytes, code: int) -> EngineError:
    lines = said.decode(errors="replace").strip().splitlines()
    ended = f"The engine ended at its start (exit code {code}): run `dg-lsp doctor`."
    words = lines[-1].removeprefix("dg-lsp: ") if lines else ended
    return BadInput(words) if code == BAD_INPUT else EngineError(words)


def _welcome(timeout_s: float) -> Welcome | None:
    if find_engine() is None:
        return None
    # What a conversation needs would take processor time from an engine that starts.
    from engine.common.client import welcome

    return welcome(timeout_s)
