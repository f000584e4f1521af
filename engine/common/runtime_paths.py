"""Folders and files of the engine: socket, lock, logs, counts. Standard library and platformdirs only.
`DG_LSP_RUNTIME_DIR` and `DG_LSP_STATE_DIR` move the two folders, `DG_LSP_TRANSPORT=tcp` replaces the Unix socket by TCP
on the loopback interface, as on Windows.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import platformdirs

from engine.common.errors import BadInput

# The shortest limit among the supported systems (macOS), less the closing zero byte.
MAX_SOCKET_PATH_NBYTES = 103
_RUNTIME, _STATE, _TRANSPORT = "DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR", "DG_LSP_TRANSPORT"


def _given(variable: str) -> Path | None:
    """A folder from an environment variable. Raises BadInput for a relative path."""
    given = os.environ.get(variable)
    if not given:
        return None
    if not Path(given).is_absolute():
        raise BadInput(f"{variable} is {given!r}: set it to a whole path.")
    return Path(given)


def uses_tcp() -> bool:
    """Whether the engine uses TCP instead of a Unix socket. Raises BadInput for an invalid setting."""
    given = os.environ.get(_TRANSPORT, "")
    if given not in ("", "unix", "tcp"):
        raise BadInput(f"{_TRANSPORT} is {given!r}: set it to tcp or unix, or to nothing.")
    return sys.platform == "win32" or given == "tcp"


def runtime_dir() -> Path:
    """The folder of socket and lock; it may not exist yet. Raises BadInput where the system offers none."""
    given = _given(_RUNTIME)
    if given:
        return given
    with warnings.catch_warnings():
        # It warns where a system has no XDG_RUNTIME_DIR, and refuses a fallback that somebody else has made.
        warnings.simplefilter("ignore")
        try:
            return Path(platformdirs.user_runtime_dir("dg-lsp"))
        except OSError as error:
            raise BadInput(f"There is no folder for the engine's socket ({error}); set {_RUNTIME} to one.") from None


def log_dir() -> Path:
    """The folder of the logs; it may not exist yet."""
    given = _given(_STATE)
    return given / "log" if given else Path(platformdirs.user_log_dir("dg-lsp", appauthor=False))


def state_dir() -> Path:
    """The folder of the editors' statistics; it may not exist yet."""
    return _given(_STATE) or Path(platformdirs.user_state_dir("dg-lsp", appauthor=False))


def data_dir() -> Path:
    """The folder of adapters and calibrations; it may not exist yet."""
    return _given(_STATE) or Path(platformdirs.user_data_dir("dg-lsp", appauthor=False))


def socket_path() -> Path:
    """The Unix socket's file. Raises BadInput where the path is longer than systems allow."""
    path = runtime_dir() / "engine.sock"
    nbytes = len(os.fsencode(path))
    if nbytes > MAX_SOCKET_PATH_NBYTES:
        raise BadInput(
            f"The socket path {path} is {nbytes} bytes long, {MAX_SOCKET_PATH_NBYTES} are allowed; "
            f"set {_RUNTIME} to a shorter folder."
        )
    return path


def tcp_address_path() -> Path:
    """The file with port and secret, for TCP."""
    return runtime_dir() / "engine.json"


def lock_path() -> Path:
    """The file that the one running engine holds locked."""
    return runtime_dir() / "engine.lock"


def make_runtime_dir() -> Path:
    """The folder of socket and lock, which only the user can enter. Raises BadInput where it can't be one."""
    return _make_private(runtime_dir(), _RUNTIME)


def make_log_dir() -> Path:
    """The folder of the logs, which only the user can enter. Raises BadInput where it can't be one."""
    return _make_private(log_dir(), _STATE)


def has_runtime_dir() -> bool:
    """Whether the folder of socket and lock exists. Raises BadInput where others can enter it."""
    folder = runtime_dir()
    with runtime_dir_usable():
        if not folder.exists():
            return False
        _check_private(folder, _RUNTIME)
    return True


def runtime_dir_usable() -> AbstractContextManager[None]:
    """Turn errors on the folder of socket and lock into a BadInput with a remedy."""
    return _usable(runtime_dir(), _RUNTIME)


def log_dir_usable() -> AbstractContextManager[None]:
    """The same for the folder of the logs."""
    return _usable(log_dir(), _STATE)


@contextmanager
def _usable(folder: Path, variable: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"The folder {folder} can't be used ({reason}); set {variable} to another one.") from None


def _make_private(folder: Path, variable: str) -> Path:
    with _usable(folder, variable):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(folder, variable)
        if sys.platform != "win32" and folder.stat().st_mode & 0o002:
            # Others would find it closed.
            raise BadInput(f"The folder {folder} is for everybody; set {variable} to one of its own.")
        folder.chmod(0o700)
    return folder


def _check_private(folder: Path, variable: str) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise BadInput(f"{folder} is not a folder; remove it or set {variable} to another one.")
    # Windows keeps a user's folders apart by access lists and has no owner numbers.
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise BadInput(
            f"The folder {folder} belongs to user {found.st_uid} instead of {os.geteuid()}; "
            f"remove it or set {variable} to another one."
        )
