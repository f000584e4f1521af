"""Linux calls that Python 3.11 does not have. Each raises OSError."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Sequence

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (1 << bit for bit in (17, 26, 27, 28, 29, 30))
_RDONLY, _NOSUID, _NODEV = 1, 2, 4
_BIND, _REC, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2
_SET_DEATH_SIGNAL, _SET_NO_NEW_PRIVS, _SET_DUMPABLE = 1, 38, 4
_MOUNT_SETATTR = 442
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219}
_JOIN_SESSION_KEYRING = 1
_SYSTEM_V = {"shmmni": "0", "shmall": "0", "msgmni": "0", "sem": "0 0 0 0"}
_RECURSIVE, _HERE = 0x8000, -100
_CAPABILITY_VERSION = 0x20080522
_DEVICES = ("null", "zero", "random", "urandom")
OUTER_PID = os.getpid()
"""This process's number outside its namespace."""


def unshare(*, user_namespace: bool) -> None:
    """Give this process its own mounts, network and interprocess communication, and its next child its own
    processes."""
    flags = _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | (_NEWUSER if user_namespace else 0)
    _call("unshare", flags)


def die_with_parent(number: int) -> None:
    """Have the kernel send this process a signal when the thread that started it ends."""
    _call("prctl", _SET_DEATH_SIGNAL, ctypes.c_ulong(number), 0, 0, 0)


def forget_keys() -> None:
    """Take an empty session keyring: through the user's own all keys of the user can be read."""
    number = _KEYCTL.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, "the number of keyctl is not known here")
    _call("syscall", ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def forbid_system_v() -> None:
    """Allow no shared memory, queues or semaphores in this namespace, as no limit of a process counts them."""
    for name, most in _SYSTEM_V.items():
        with open(f"/proc/sys/kernel/{name}", "w") as bound:
            bound.write(most)


def enter_empty_root(folder: str, visible: Sequence[str], room_nbytes: int) -> None:
    """Make `folder` the root, with what is `visible` (read only), a few devices and `/tmp`, which becomes the working
    directory."""
    _mount("none", "/", None, _REC | _PRIVATE)
    _mount("tmpfs", folder, "tmpfs", _NOSUID, f"size={2 * room_nbytes},nr_inodes=4096,mode=755")
    for path in visible:
        _show(path, folder)
    os.mkdir(f"{folder}/tmp", 0o777)
    os.chmod(f"{folder}/tmp", 0o777)
    os.mkdir(f"{folder}/dev")
    for device in _DEVICES:
        _bind_file(f"/dev/{device}", f"{folder}/dev/{device}")
    os.chdir(folder)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", _DETACH)
    os.chdir("/tmp")


def drop_privileges() -> None:
    """Give up all capabilities for good; other processes of the same user may not look into this one."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())
    _call("prctl", _SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0)
    _call("prctl", _SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0)


def _show(path: str, folder: str) -> None:
    target = folder + path
    if os.path.lexists(target) or not os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
    elif os.path.isfile(path):
        _bind_file(path, target)
        _read_only(target)
    else:
        os.mkdir(target)
        _mount(path, target, None, _BIND | _REC)
        _read_only(target)


def _bind_file(path: str, target: str) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    _mount(path, target, None, _BIND)


def _read_only(target: str) -> None:
    """Make a mount and all below it read only."""
    attributes = (ctypes.c_uint64 * 4)(_RDONLY | _NOSUID | _NODEV, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    _call("syscall", ctypes.c_long(_MOUNT_SETATTR), _HERE, os.fsencode(target), _RECURSIVE, attributes, size)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = None if kind is None else kind.encode()
    _call("mount", os.fsencode(source), os.fsencode(target), encoded, ctypes.c_ulong(flags), data.encode() or None)


def _call(name: str, *arguments: object) -> None:
    if sys.platform != "linux":
        raise OSError("only Linux has namespaces")
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
