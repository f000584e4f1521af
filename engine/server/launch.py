"""Start an engine that outlives whoever starts it, and end one whatever state it is in."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from typing import IO, TYPE_CHECKING

import msgspec

from engine.core.errors import BadInput, EngineError
from engine.core.exits import BAD_INPUT
from engine.core.processes import neutral_dir, python_module
from engine.core.runtime_paths import lock_path, log_dir, make_runtime_dir, runtime_dir_usable
from engine.ipc.client import EngineFailure, NoAnswer, ask, running_peer, welcome
from engine.ipc.messages import Stop
from engine.ipc.peercred import kill
from engine.server.settings import EngineOptions

if TYPE_CHECKING:
    from filelock import FileLock

_START_S = 30.0
_STOP_S = 1.5
_SILENCE_S = 0.7
_KILLED_S = 15.0
_LOSER_S = 10.0
_POLL_S = 0.02
_CREATION_FLAGS = 0
if sys.platform == "win32":
    _CREATION_FLAGS = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP


def start_detached(settings: EngineOptions) -> bool:
    """Start an engine in the background and wait until it answers; False where one runs already. Raises EngineError."""
    return start(settings) is not None


def start(settings: EngineOptions) -> subprocess.Popen[bytes] | None:
    """The same, for who waits for its end; None where one runs already."""
    # What the user must put right is said before there is a process that could come to life later.
    folder = make_runtime_dir()
    if welcome():
        return None
    # A file without a name instead of a pipe: what the engine says later, when nobody reads, must not break it.
    with contextlib.ExitStack() as stack:
        with runtime_dir_usable():
            said = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        process = subprocess.Popen(
            [*python_module("engine.server"), json.dumps(msgspec.to_builtins(settings))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            cwd=neutral_dir(),
            # On Windows the flags make it outlive the console, elsewhere the session of its own does.
            start_new_session=True,
            creationflags=_CREATION_FLAGS,
        )
        try:
            return process if _wait_for_answer(process, said) else None
        except BaseException:  # at Ctrl-C, too, or it might come up with nobody there
            process.kill()
            process.wait()
            raise


def stop() -> bool:
    """End the running engine and wait until it is gone; False where none ran. Raises EngineError where it stays."""
    ends = time.monotonic() + _STOP_S
    # Who it is says the kernel; asked first, as one that hangs at its end can't be asked any more.
    engine = running_peer()
    try:
        found = ask(Stop(id=1), _SILENCE_S) is not None
    except NoAnswer as silence:
        # It hangs, or speaks another version.
        _end(silence)
        found = True
    except EngineFailure:
        # It refuses to talk, as it has too many clients.
        found = True
    if found and not _is_gone(ends) and not (kill(engine) and _is_gone(time.monotonic() + _KILLED_S)):
        raise EngineError(f"The engine does not end; end the process that holds {lock_path()}.")
    return found


def engine_lock() -> FileLock | None:
    """What the one running engine holds, now held; None where another holds it. Raises BadInput."""
    # Who starts an engine holds no lock, and need not wait for this.
    from filelock import FileLock, Timeout

    lock = FileLock(lock_path(), mode=0o600)
    with runtime_dir_usable():
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
    return lock


def _wait_for_answer(process: subprocess.Popen[bytes], said: IO[bytes]) -> bool:
    """Whether it is this process that answers."""
    ends = time.monotonic() + _START_S
    while not (answer := welcome()):
        if process.poll():
            said.seek(0)
            raise _last_words(said.read(), process.returncode)
        if time.monotonic() > ends:
            log = log_dir() / "engine.log"
            raise EngineError(f"The engine did not answer within {_START_S:g} s: see {log}, or run `dg-lsp doctor`.")
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


def _end(silence: NoAnswer) -> None:
    if not kill(silence.peer):
        raise silence


def _is_gone(ends: float) -> bool:
    """Whether no engine holds the lock, now or by then."""
    while (lock := engine_lock()) is None:
        if time.monotonic() > ends:
            return False
        time.sleep(_POLL_S)
    lock.release()
    return True
