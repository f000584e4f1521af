"""Where a running engine listens, as clients find it and the engine leaves it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.common.files import replacing
from engine.common.peercred import is_own, listener
from engine.common.runtime_paths import has_runtime_dir, lock_path, socket_path, tcp_address_path, uses_tcp


@dataclass(frozen=True, slots=True, kw_only=True)
class UnixAddress:
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpAddress:
    """A port on the loopback interface, and a secret that only the user's own processes can read."""

    port: int
    secret: str
    """Known to both ends, said by neither: see engine.common.challenge."""
    pid: int
    """The process that listens there, by its own account."""


Address = UnixAddress | TcpAddress


def find_engine() -> Address | None:
    """Where a running engine listens, or None where no trace of one is found; a socket file may be stale.

    A port is anybody's once the engine is gone, so a port counts only while the engine's own process listens there.
    Raises BadInput where the folder belongs to somebody else.
    """
    if not has_runtime_dir():
        return None
    if not uses_tcp():
        path = socket_path()
        return UnixAddress(path=str(path)) if path.exists() else None
    address = _read_tcp_address(tcp_address_path())
    return address if address and is_own(listener(address.pid, address.port)) else None


def write_tcp_address(address: TcpAddress) -> None:
    """Leave port and secret for clients; only the user can read the file. Replaces an older one in one move."""
    # Takes longer to import than all the rest here, and a socket file needs none of it.
    from msgspec import json

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with replacing(tcp_address_path()) as draft, os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
        file.write(json.encode(address))


def forget_address() -> None:
    """Remove what clients find the engine by, whoever left it: the lock is to be held."""
    _address_path().unlink(missing_ok=True)


class Claim:
    """The lock of an engine, as it is before it listens, and the address, as it is when it does.

    Others may come in their place while it lives: the folder of both may go with the user's last session, and the next
    engine makes it anew. A file system gives no other file the number of the lock as long as that is held open.
    """

    def __init__(self) -> None:
        """Take the lock, which is held. Raises OSError."""
        self._address = _address_path()
        self._ids = {lock_path(): _file_id(lock_path())}

    def settle(self) -> None:
        """Take the address, too. Raises OSError."""
        self._ids[self._address] = _file_id(self._address)

    def holds(self) -> bool:
        """Whether both are still where they were. Raises OSError where nobody can tell."""
        return all(_file_id(path) == known for path, known in self._ids.items())

    def forget(self) -> None:
        """Remove what clients find the engine by, unless another's may be there."""
        with suppress(OSError):
            if self.holds():
                self._address.unlink()


def _address_path() -> Path:
    return tcp_address_path() if uses_tcp() else socket_path()


def _file_id(path: Path) -> tuple[int, int] | None:
    """Device and number on it; None where there is no file. Raises OSError."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _read_tcp_address(path: Path) -> TcpAddress | None:
    from msgspec import MsgspecError, json

    try:
        return json.decode(path.read_bytes(), type=TcpAddress)
    except (OSError, ValueError, MsgspecError):
        # A missing or half-written file says the same: nobody can be met here yet.
        return None
