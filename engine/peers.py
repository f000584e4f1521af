"""Who is at the other end of a Unix socket, as the kernel tells it."""

from __future__ import annotations

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


def is_own(peer: Peer | None) -> bool:
    """Whether the peer runs as this process's user; unknown counts as own, for there a token decides."""
    return peer is None or sys.platform == "win32" or peer.uid == os.geteuid()
