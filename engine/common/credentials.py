"""API keys, from the environment or a file that only the user can read, never from a project."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from engine.common.errors import BadInput, NotRead
from engine.common.files import open_regular
from engine.common.http_address import HttpAddress

SERVER_KEY = "DG_LSP_SERVER_KEY"
"""The variable with the key that is sent to a server."""
HTTP_TOKEN = "DG_LSP_HTTP_TOKEN"
"""The variable with the key that HTTP clients must send."""
_MOST_NBYTES = 16 * 1024


def read_key(variable: str, key_file: str) -> str:
    """The key; empty where there is none. Raises BadInput for a file that others can read, or one that holds none."""
    key = os.environ.get(variable, "").strip()
    where = variable
    if not key and key_file:
        key, where = _in_file(Path(key_file)), key_file
    if not key.isascii() or not key.isprintable() or " " in key:
        raise BadInput(f"{where} holds no key that a header could hold: write the key alone into it.")
    return key


def http_token(address: HttpAddress, key_file: str) -> str:
    """The token for HTTP clients at `address`; empty: none, which is allowed only on the loopback interface. Raises
    BadInput."""
    token = read_key(HTTP_TOKEN, key_file)
    if not token and not address.local:
        raise BadInput(
            f"{address} can be reached from other machines: put a token into {HTTP_TOKEN}, or into a file that only "
            "you can read and name it by --http-token-file (engine.http_token_file)."
        )
    return token


def _in_file(named: Path) -> str:
    try:
        path = named.expanduser()
        with open_regular(path) as stream:
            # The open file's, as another could take its place meanwhile.
            held = os.fstat(stream.fileno())
            if sys.platform != "win32" and (held.st_uid != os.getuid() or stat.S_IMODE(held.st_mode) & 0o077):
                raise BadInput(f"The key in {named} can be read by others: run `chmod 600 {path}` as its owner.")
            key = stream.read(_MOST_NBYTES).decode().strip()
    except NotRead:
        raise
    except (OSError, RuntimeError, ValueError):
        raise BadInput(f"The key file {named} can't be read: write the key into it.") from None
    if not key:
        raise BadInput(f"The key file {named} is empty: write the key into it.")
    return key
