"""Prerequisites of the HTTP server: a package, and a socket to listen at."""

from __future__ import annotations

import errno
import socket
import sys

from engine.common.errors import BadInput, EngineError
from engine.common.http_address import HttpAddress


def check_extra() -> None:
    """Raises BadInput if the package is not installed."""
    try:
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise BadInput(
            f"The HTTP server needs {error.name}, which is not installed: "
            "run `pipx install --force '.[http]'` in a clone of dg-lsp."
        ) from None


def bound(address: HttpAddress) -> socket.socket:
    """A socket at an address. Raises BadInput for an address that is not of this machine, EngineError for one in
    use."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # Clients that are told a number are told this kind.
        family, kind, _, _, where = min(found, key=lambda each: each[0] != socket.AF_INET)
        made = socket.socket(family, kind)
    except OSError as error:
        raise BadInput(f"There is no address {address.host!r} for the HTTP server ({error}).") from None
    try:
        # On Windows this would let two programs have one port.
        if sys.platform != "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
        made.setblocking(False)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise BadInput(f"{address} is no address of this machine: listen at one that is.") from None
        raise EngineError(f"The HTTP server can't listen on {address} ({error}): choose another port.") from None
    return made
