"""Where the engine can be met and where it logs. Standard library and platformdirs only: both processes use it.

`DG_LSP_RUNTIME_DIR` and `DG_LSP_STATE_DIR` move the two folders, `DG_LSP_TRANSPORT=tcp` replaces the Unix socket by TCP
on the loopback interface, as on Windows.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from pathlib import Path

import platformdirs

from engine.core.errors import BadInput

# The shortest limit among the supported systems (macOS), less the closing zero byte.
MAX_SOCKET_PATH_NBYTES = 103


def uses_tcp() -> bool:
    """Whether the engine is met over TCP instead of a Unix socket."""
    return sys.platform == "win32" or os.environ.get("DG_LSP_TRANSPORT") == "tcp"


def runtime_dir() -> Path:
    """The folder of socket and lock; it may not exist yet."""
    given = os.environ.get("DG_LSP_RUNTIME_DIR")
    if given:
        return Path(given)
    with warnings.catch_warnings():
        # It warns where a system has no XDG_RUNTIME_DIR; the fallback it takes is checked by `private_dir`.
        warnings.simplefilter("ignore")
        return Path(platformdirs.user_runtime_dir("dg-lsp"))


def log_dir() -> Path:
    """The folder of the logs; it may not exist yet."""
    given = os.environ.get("DG_LSP_STATE_DIR")
    return Path(given) / "log" if given else Path(platformdirs.user_log_dir("dg-lsp", appauthor=False))


def data_dir() -> Path:
    """The folder of what is learnt about models on this machine; it may not exist yet."""
    given = os.environ.get("DG_LSP_STATE_DIR")
    return Path(given) if given else Path(platformdirs.user_data_dir("dg-lsp", appauthor=False))


def socket_path() -> Path:
    """The Unix socket's file. Raises BadInput where the path is longer than systems allow."""
    path = runtime_dir() / "engine.sock"
    nbytes = len(os.fsencode(path))
    if nbytes > MAX_SOCKET_PATH_NBYTES:
        raise BadInput(
            f"The socket path {path} is {nbytes} bytes long, {MAX_SOCKET_PATH_NBYTES} are allowed; "
            "set DG_LSP_RUNTIME_DIR to a shorter folder."
        )
    return path


def tcp_address_path() -> Path:
    """The file with port and secret, where TCP is used."""
    return runtime_dir() / "engine.json"


def lock_path() -> Path:
    """The file that the one running engine holds locked."""
    return runtime_dir() / "engine.lock"


def private_dir(path: Path) -> Path:
    """Make `path` a folder that only the user can enter. Raises BadInput where it can't be one."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(path)
        path.chmod(0o700)
    except OSError as error:
        raise BadInput(f"The folder {path} can't be used ({error.strerror}); set DG_LSP_RUNTIME_DIR.") from None
    return path


def check_private(path: Path) -> None:
    """Raises BadInput unless `path` is a folder of this user's, not a link to one."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise BadInput(f"{path} is not a folder; remove it or set DG_LSP_RUNTIME_DIR.")
    # Windows keeps a user's folders apart by access lists and has no owner numbers.
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise BadInput(
            f"The folder {path} belongs to user {found.st_uid} instead of {os.geteuid()}; "
            "remove it or set DG_LSP_RUNTIME_DIR."
        )
