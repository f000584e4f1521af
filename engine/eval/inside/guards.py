"""Where the kernel gives no walls: the interpreter refuses what a solution has no business with.

An audit hook can't be taken away again, but whoever finds a way around the interpreter is not held by it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_REFUSED = (
    *("socket.", "ctypes.", "subprocess.", "pty.", "signal.", "gc.", "code.__new__", "syslog.", "fcntl."),
    *("os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.kill"),
)
_MODULES = {"ctypes", "_ctypes", "_posixsubprocess", "_testcapi", "_xxsubinterpreters"}
_ON_PATHS = (
    *("os.chflags", "os.chmod", "os.chown", "os.truncate", "os.utime", "os.setxattr", "os.removexattr"),
    *("os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "shutil."),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def guard(folder: str) -> None:
    """From now on, for this process: no network, no writing outside `folder` (a real path), no other processes.

    Nor what those hold open, such as a test and its answers.
    """
    realpath, dirname, sep = os.path.realpath, os.path.dirname, os.sep

    def inside(path: Any) -> bool:
        if not isinstance(path, str | bytes):
            return True  # a file that is open already
        real = realpath(os.fsdecode(path))
        return real == os.devnull or real == folder or real.startswith(folder + sep)

    def on_processes(path: Any) -> bool:
        # What is named there leads elsewhere, so its folder counts.
        return isinstance(path, str | bytes) and f"{realpath(dirname(os.fsdecode(path)))}{sep}".startswith("/proc/")

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        refused = event.startswith(_REFUSED)
        if event == "import":
            refused = arguments[0] in _MODULES
        elif event == "open":
            writing = bool((arguments[2] or 0) & _WRITING) and not inside(arguments[0])
            refused = writing or on_processes(arguments[0])
        elif event.startswith(_ON_PATHS):
            refused = not all(inside(argument) for argument in arguments)
        if refused:
            raise PermissionError(f"{event} is not allowed here")

    sys.addaudithook(refuse)
