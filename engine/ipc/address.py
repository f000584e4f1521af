"""Where a running engine listens, as clients find it and the engine leaves it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.core.runtime_paths import check_private, runtime_dir, socket_path, token_path, uses_tcp


@dataclass(frozen=True, slots=True, kw_only=True)
class UnixAddress:
    """A socket file."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpAddress:
    """A port on the loopback interface, and the secret that only the user's own processes can read."""

    port: int
    token: str
    pid: int
    """The process that listens there, by its own account."""


Address = UnixAddress | TcpAddress


def find_engine() -> Address | None:
    """Where a running engine listens, or None where no trace of one is found; the trace may be stale.

    Raises BadInput where the folder belongs to somebody else.
    """
    if not runtime_dir().exists():
        return None
    check_private(runtime_dir())
    if not uses_tcp():
        path = socket_path()
        return UnixAddress(path=str(path)) if path.exists() else None
    return _read_token(token_path())


def write_token(address: TcpAddress) -> None:
    """Leave port and token for clients; only the user can read the file. Replaces an older one in one move."""
    path = token_path()
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        json.dump(asdict(address), file)
    draft.replace(path)


def forget_address() -> None:
    """Remove what clients find the engine by."""
    (token_path() if uses_tcp() else socket_path()).unlink(missing_ok=True)


def _read_token(path: Path) -> TcpAddress | None:
    try:
        held = json.loads(path.read_text(encoding="ascii"))
        return TcpAddress(port=int(held["port"]), token=str(held["token"]), pid=int(held["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        # A missing or half-written file says the same: nobody can be met here yet.
        return None
