"""The address of a running engine: how the engine publishes it and clients find it."""

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
    """A secret that both ends know and neither sends: see engine.common.challenge."""
    pid: int
    """The process that listens there, as it says itself."""


Address = UnixAddress | TcpAddress


def find_engine() -> Address | None:
    """The address of a running engine; None if there is none. A socket file may be stale. A port may be taken by
    another program once the engine is gone, so it counts only while the engine's process listens there. Raises BadInput
    where the folder belongs to another user.
    """
    if not has_runtime_dir():
        return None
    if not uses_tcp():
        path = socket_path()
        return UnixAddress(path=str(path)) if path.exists() else None
    address = _read_tcp_address(tcp_address_path())
    return address if address and is_own(listener(address.pid, address.port)) else None


def write_tcp_address(address: TcpAddress) -> None:
    """Write port and secret for clients to a file that only the user can read, replacing an older one atomically."""
    # Takes longer to import than all the rest here, and a socket file needs none of it.
    from msgspec import json

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with replacing(tcp_address_path()) as draft, os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
        file.write(json.encode(address))


def forget_address() -> None:
    """Remove any published address. The caller must hold the lock."""
    _address_path().unlink(missing_ok=True)


class Claim:
    """Identifies an engine's lock and address files, which another engine may replace while it lives: their folder may
    be deleted with the user's last session, and the next engine creates it again. Files are compared by inode, which is
    not reused while the lock is open.
    """

    def __init__(self) -> None:
        """Note the lock file, which is held. Raises OSError."""
        self._address = _address_path()
        self._ids = {lock_path(): _file_id(lock_path())}

    def settle(self) -> None:
        """Note the address file, too. Raises OSError."""
        self._ids[self._address] = _file_id(self._address)

    def holds(self) -> bool:
        """Whether both files are still the same. Raises OSError where that can't be told."""
        return all(_file_id(path) == known for path, known in self._ids.items())

    def forget(self) -> None:
        """Remove the published address, unless another engine may have replaced it."""
        with suppress(OSError):
            if self.holds():
                self._address.unlink()


def _address_path() -> Path:
    return tcp_address_path() if uses_tcp() else socket_path()


def _file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode; None where there is no file. Raises OSError."""
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
        # A missing or half-written file means the same: there is no engine yet.
        return None
