"""An engine as a copy of the process that starts it, which works before a new Python would have begun."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from typing import IO

from engine.common.processes import neutral_dir

_POLL_S = 0.02


class ForkedEngine:
    """Its process, with what `subprocess.Popen` tells of one. Linux alone; only for a starter that has one thread, and
    imported next to nothing: what can't be copied is not there yet."""

    def __init__(self, run: Callable[[], int], said: IO[bytes]) -> None:
        """`run` comes back with its exit code; what it says on standard error goes to `said`."""
        self._code: int | None = None
        # Who ignores the ends of its children, as whoever started this may, is not told how they end.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Ctrl-C meets a starter that has no engine, or one that can end it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                _leave(said)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                code = run()
            except BaseException as error:  # noqa: BLE001 whatever it is, it is said as a new Python would say it
                traceback.print_exception(error)
            finally:
                # Nothing that the starter would still have done may be done twice.
                os._exit(code)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except BaseException:
            self.kill()
            self.wait()
            raise

    def poll(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        began = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired("the engine", timeout)
            time.sleep(_POLL_S)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _leave(said: IO[bytes]) -> None:
    """The starter's session, folder, streams and whatever else was open when it began."""
    os.setsid()
    os.chdir(neutral_dir())
    # Where the starter has no standard streams, their numbers are those of other files.
    told = fcntl.fcntl(said, fcntl.F_DUPFD, 3)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream, file in enumerate((nothing, nothing, told)):
        os.dup2(file, stream)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
