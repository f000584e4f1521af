"""Stop the running engine, whatever state it is in, and hold the lock that says that none runs."""

from __future__ import annotations

import time

from filelock import FileLock, Timeout

from engine.common.client import EngineFailure, NoAnswer, ask, running_peer
from engine.common.errors import EngineError
from engine.common.messages import Stop
from engine.common.peercred import holder, kill
from engine.common.runtime_paths import lock_path, runtime_dir_usable

_STOP_S = 1.5
_SILENCE_S = 0.7
_KILLED_S = 15.0
_POLL_S = 0.02


def stop() -> bool:
    """End the running engine and wait until it is gone; False where none ran. Raises EngineError where it stays."""
    ends = time.monotonic() + _STOP_S
    # Who it is says the kernel; asked first, as one that hangs at its end can't be asked any more.
    engine = running_peer()
    while not _is_told():
        if _is_gone(0):
            return False
        # It starts, or ends, or hangs at the one or the other.
        if time.monotonic() > ends:
            break
        time.sleep(_POLL_S)
    if not _is_gone(ends) and not (
        (kill(engine) or kill(holder(lock_path()))) and _is_gone(time.monotonic() + _KILLED_S)
    ):
        raise EngineError(f"The engine does not end; end the process that holds {lock_path()}.")
    return True


def engine_lock() -> FileLock | None:
    """The lock of the one running engine, now held; None where another process holds it. Raises BadInput."""
    lock = FileLock(lock_path(), mode=0o600)
    with runtime_dir_usable():
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
    return lock


def _is_told() -> bool:
    """Whether there was an engine to be told to end. Raises NoAnswer for one that is another user's."""
    try:
        return ask(Stop(id=1), _SILENCE_S) is not None
    except NoAnswer as silence:
        # It hangs, or speaks another version.
        if not kill(silence.peer) and not kill(holder(lock_path())):
            raise
    except EngineFailure:
        # It refuses to talk, as it has too many clients.
        pass
    return True


def _is_gone(ends: float) -> bool:
    """Whether no engine holds the lock, now or by then."""
    while (lock := engine_lock()) is None:
        if time.monotonic() > ends:
            return False
        time.sleep(_POLL_S)
    lock.release()
    return True
