"""Who is at the other end of a connection to the engine, as the system tells it; and ending it."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from dataclasses import dataclass

# <sys/un.h> of macOS and the BSDs; Python has no names for them.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The process at the other end."""

    uid: int
    pid: int | None


def peer_of(sock: socket.socket) -> Peer | None:
    """The peer of a connected Unix socket; None where the socket or the system has no such notion. Raises OSError."""
    if sys.platform == "win32" or sock.family != socket.AF_UNIX:
        return None
    if sys.platform == "linux":
        pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return Peer(uid=uid, pid=pid)
    _, uid = struct.unpack_from("2I", sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76))
    pid = None
    if sys.platform == "darwin":
        pid = struct.unpack("i", sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))[0]
    return Peer(uid=uid, pid=pid)


def listener(pid: int | None, port: int) -> Peer | None:
    """The process `pid`, if it listens on a TCP port; None where it doesn't, or nobody can tell."""
    # Only where something is wrong: it takes longer to import than a language server may take to greet.
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid) if pid else None
        sockets = process.net_connections("tcp") if process else []
        if process and any(held.status == psutil.CONN_LISTEN and held.laddr.port == port for held in sockets):
            return Peer(uid=-1 if sys.platform == "win32" else process.uids().real, pid=process.pid)
    return None


def kill(peer: Peer | None) -> bool:
    """End a process of this user's at once; False where it is not known, or another's."""
    import psutil

    if peer is None or not peer.pid or not is_own(peer):
        return False
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(peer.pid).kill()
    return True


def is_own(peer: Peer | None) -> bool:
    """Whether the peer runs as this process's user; unknown counts as own, for there a token decides."""
    return peer is None or sys.platform == "win32" or peer.uid == os.geteuid()
