"""The process at the other end of a connection, according to the system, and how to end it."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

# <sys/un.h> of macOS and the BSDs; Python has no names for them.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    is_own: bool
    """Whether it runs as the same user."""
    pid: int | None


def peer_of(sock: socket.socket) -> Peer | None:
    """The peer of a connected Unix socket; None where the socket or the system has no such notion. Raises OSError."""
    if sys.platform == "win32" or sock.family != socket.AF_UNIX:
        return None
    if sys.platform == "linux":
        pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return Peer(is_own=uid == os.geteuid(), pid=pid)
    _, uid = struct.unpack_from("2I", sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76))
    pid = None
    if sys.platform == "darwin":
        pid = struct.unpack("i", sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))[0]
    return Peer(is_own=uid == os.geteuid(), pid=pid)


def listener(pid: int, port: int) -> Peer | None:
    """The process `pid` if it listens on a TCP port; None where it does not, or unknown."""
    # Only over TCP, or where something is wrong: it takes longer to import than a language server may take to answer.
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        if any(
            held.status == psutil.CONN_LISTEN and held.laddr.port == port for held in process.net_connections("tcp")
        ):
            return Peer(is_own=_is_own_process(process), pid=process.pid)
    return None


def work_done(peer: Peer | None) -> tuple[float, int] | None:
    """Processor seconds and memory of a peer's process; None where unknown. Both stay the same for a process that is
    stopped or hangs.
    """
    if peer is None or not peer.pid:
        return None
    import psutil

    try:
        process = psutil.Process(peer.pid)
        times = process.cpu_times()
        return times.user + times.system, process.memory_info().rss
    except psutil.Error:
        return None


def is_stopped(peer: Peer | None) -> bool:
    """Whether a peer's process is known to be stopped, other than briefly by a debugger."""
    if peer is None or not peer.pid:
        return False
    import psutil

    with contextlib.suppress(psutil.Error):
        return psutil.Process(peer.pid).status() == psutil.STATUS_STOPPED
    return False


def holder(path: Path) -> Peer | None:
    """The process of this user that keeps a file open, such as an engine's lock."""
    import psutil

    def keeps(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            is_other = process.pid != os.getpid() and _is_own_process(process)
            return is_other and any(os.path.realpath(path) == each.path for each in process.open_files())
        return False

    # Who only tries whether a lock is free has its file open for a moment: twice in a row is no accident.
    found = [process for process in psutil.process_iter() if keeps(process)]
    return next((Peer(is_own=True, pid=process.pid) for process in found if keeps(process)), None)


def kill(peer: Peer | None) -> bool:
    """Kill a process of this user; False where it is unknown or another user's."""
    import psutil

    if peer is None or not peer.pid or not peer.is_own:
        return False
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(peer.pid).kill()
    return True


def is_own(peer: Peer | None) -> bool:
    """Whether the peer is known to run as the same user."""
    return peer is not None and peer.is_own


def _is_own_process(process: psutil.Process) -> bool:
    if sys.platform == "win32":
        return process.username() == type(process)().username()
    return process.uids().effective == os.geteuid()
