"""git, asked about repositories that may be hostile: no command that their settings name is run."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from engine.core.processes import home_dir

_OFF = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.pager=cat", "log.showSignature=false")
_ENVIRONMENT = {
    # A partial clone would fetch what is missing, with commands and addresses of its own choice.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_GIT_S = 1.0
_NAME = "git.exe" if sys.platform == "win32" else "git"


def run_git(repository: Path, *arguments: str, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    """Run one of git's plumbing commands, which know neither pagers nor signatures nor filters; or `log` without a
    patch, whose pager and check of signatures are switched off here.

    Raises OSError where there is no git, subprocess.TimeoutExpired.
    """
    settings = [word for setting in _OFF for word in ("-c", setting)]
    return subprocess.run(
        [_found(), "--no-pager", *settings, "-C", str(repository), *arguments],
        env={**os.environ, **_ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )


def _found() -> Path:
    """git, by an absolute path: what lies in the working directory is not looked at, whatever the PATH says."""
    # Not shutil.which, which begins in the working directory on Windows.
    for folder in map(Path, os.get_exec_path()):
        if folder.is_absolute() and os.access(folder / _NAME, os.X_OK):
            return folder / _NAME
    raise FileNotFoundError(2, "No git is on the PATH")


def excludes_file(repository: Path) -> Path:
    """git's `core.excludesFile` as it holds in a folder, else the file that git takes where nothing is set.

    The file may not exist. Asks git itself, whose settings include one another; see gitignore(5) for the default.
    """
    with suppress(OSError, subprocess.TimeoutExpired):
        asked = run_git(repository, "config", "--get", "--path", "core.excludesFile", timeout_s=_GIT_S)
        if asked.returncode == 0:
            return repository / os.fsdecode(asked.stdout).removesuffix("\n")
    settings = os.environ.get("XDG_CONFIG_HOME")
    return (Path(settings) if settings else home_dir() / ".config") / "git" / "ignore"
