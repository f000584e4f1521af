"""A file to oneself for a moment, as far as the system can give it, among programs that take no locks.

Linux holds back whoever opens a file to write while another has a lease on it, and tells the holder
(fcntl(2), "Leases"). Elsewhere only those wait that ask as we do.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from engine.common.errors import EngineError
from engine.common.files import open_regular

if sys.platform != "win32":
    import fcntl

_WAIT_S = 2.0
"""For others to finish; far less than the time after which Linux takes a lease away."""
_POLL_S = 0.001


@contextmanager
def exclusive(path: Path) -> Generator[Callable[[], bool]]:
    """Within the block nobody else opens the file at `path` to write; yields whether somebody waits to.

    Raises EngineError where another program has it open to write and goes on to, or OSError.
    """
    if sys.platform == "win32":
        # A file that is open can't be replaced there; whoever has it open to write keeps us from it in that way.
        yield lambda: False
        return
    ends = time.monotonic() + _WAIT_S
    while True:
        with open_regular(path) as stream:
            descriptor = stream.fileno()
            if _flocked(descriptor) and (lease := _lease(descriptor)) != "refused":
                # Whoever had it before may have put another file in its place.
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    yield partial(_is_wanted, descriptor) if lease == "held" else lambda: False
                    return
            elif time.monotonic() > ends:
                raise EngineError(f"{path} is unchanged, as another program has it open to write: try again.")
        time.sleep(_POLL_S)


if sys.platform != "win32":

    def _flocked(descriptor: int) -> bool:
        """Whether nobody else has it locked, as far as can be told."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # a file system without locks, or one that takes them only of who may write
        return True

    def _lease(descriptor: int) -> Literal["held", "refused", "unknown"]:
        """Until the file is closed. "refused": somebody has it open to write; "unknown": there are no leases here."""
        if sys.platform != "linux":
            return "unknown"
        try:
            # The signal for somebody who waits is one that is ignored, as the usual one would end the process.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            return "refused"
        except OSError:
            return "unknown"  # a file of another user, or a file system without leases
        return "held"

    def _is_wanted(descriptor: int) -> bool:
        return sys.platform == "linux" and fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK
