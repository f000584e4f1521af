"""Confines this process for the rest of its life."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

from engine.lab.eval.inside import kernel

_FIRST_FREE_USER = 60_000
_FREE_USERS = 5_000
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/etc/ld.so.cache")
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

Level = Literal["namespaces", "guards"]
"""`namespaces`: the kernel hides network, files and other processes (Linux, where it lets users do so). `guards`: the
interpreter refuses them, which stops accidents and common tricks, but is no wall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """The limits of one process; `processes` counts its children and threads as well."""

    level: Level = "namespaces"
    folder: str = ""
    """The only folder that it may write to; empty: a folder of its own."""
    cpu_s: int = 10
    wall_s: float = 60.0
    """A bound for busy machines; processor time is the limit that counts."""
    memory_nbytes: int = 1 << 30
    file_nbytes: int = 16 << 20
    """Largest file, and largest output."""
    files: int = 64
    """Files open at once."""
    processes: int = 8


def confine(limits: SandboxLimits) -> None:
    """Put this process under `limits`. Raises OSError where the kernel refuses."""
    # A kernel without keyrings, or one that forbids them, shows no keys either.
    with suppress(OSError):
        kernel.forget_keys()
    if limits.level == "namespaces":
        user, group = os.getuid(), os.getgid()
        kernel.unshare(user_namespace=user != 0)
        if user != 0:
            _map_own(user, group)
        _continue_in_child(limits.wall_s)
        # Older kernels let only root set these; the memory is then bounded by the machine alone: see SECURITY.md.
        with suppress(OSError):
            kernel.forbid_system_v()
        # Python's own files and the libraries it needs; nothing of the user's.
        visible = (*_SYSTEM, *{sys.base_prefix, sys.base_exec_prefix})
        kernel.enter_empty_root(limits.folder, visible, limits.file_nbytes)
        _limit(limits)
        _become_nobody(user)
        kernel.drop_privileges()
    else:
        # Elsewhere than on Linux nothing tells a process that its parent ended.
        with suppress(OSError):
            kernel.die_with_parent(signal.SIGKILL)
        os.chdir(limits.folder)
        _limit(limits)
        guard(os.path.realpath(limits.folder))


def _map_own(user: int, group: int) -> None:
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{file}", "w") as map_:
            map_.write(text)


def _continue_in_child(wall_s: float) -> None:
    """Go on in a child, the first process of its namespace: when it ends, all others there end. The parent only waits
    for it."""
    child = 0

    def kill(*_: Any) -> None:
        if child:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def kill_when_known(number: int, frame: FrameType | None) -> None:
        kill() if child else signal.setitimer(signal.ITIMER_REAL, 0.01)

    signal.signal(signal.SIGALRM, kill_when_known)
    signal.signal(signal.SIGTERM, kill_when_known)
    kernel.die_with_parent(signal.SIGTERM)
    child = os.fork()
    if child:
        signal.setitimer(signal.ITIMER_REAL, wall_s)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _limit(limits: SandboxLimits) -> None:
    import resource

    wanted = {
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_AS": limits.memory_nbytes,
        "RLIMIT_FSIZE": limits.file_nbytes,
        "RLIMIT_NOFILE": limits.files,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_CORE": 0,
    }
    for name, most in wanted.items():
        kind = getattr(resource, name, None)
        # Not every system has every limit; macOS refuses the one on memory.
        if kind is not None:
            with suppress(ValueError, OSError):
                resource.setrlimit(kind, (most, most))


def _become_nobody(user: int) -> None:
    """Become a user who owns nothing and runs nothing else: the kernel neither counts root's processes nor hides files
    from it."""
    if user == 0:
        free = _FIRST_FREE_USER + kernel.OUTER_PID % _FREE_USERS
        os.setgroups([])
        os.setresgid(free, free, free)
        os.setresuid(free, free, free)


def guard(folder: str) -> None:
    """Have the interpreter refuse what a solution does not need, where the kernel can't: network, writing outside
    `folder` (a real path), other processes and what they hold open.

    This holds for the rest of the process, as an audit hook can't be removed. It does not hold whoever finds a way
    around the interpreter.
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
