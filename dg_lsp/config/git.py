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
_OF_ANOTHER = {f"GIT_{name}" for name in ("DIR", "WORK_TREE", "COMMON_DIR", "INDEX_FILE", "OBJECT_DIRECTORY")}
"""Variables that name a repository, whichever is asked about: of an editor that git has started."""
_GIT_S = 3.0
_NAME = "git.exe" if sys.platform == "win32" else "git"


def run_git(repository: Path, *arguments: str, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    """Run one of git's plumbing commands, which know neither pagers nor signatures nor filters; or `log` without a
    patch, whose pager and check of signatures are switched off here.

    Raises OSError where there is no git, subprocess.TimeoutExpired.
    """
    settings = [word for setting in _OFF for word in ("-c", setting)]
    return subprocess.run(
        [_found(), "--no-pager", *settings, "-C", str(repository), *arguments],
        env={name: value for name, value in os.environ.items() if name not in _OF_ANOTHER} | _ENVIRONMENT,
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


def ignore_files(repository: Path) -> tuple[Path, Path]:
    """git's ignore files for a repository that lie in none of its folders, the weightier first: its own, which its
    worktrees share, and `core.excludesFile` as it holds there, else the file that git takes where nothing is set.

    They may not exist. Asks git itself, whose settings include one another; see gitignore(5) for the defaults. Raises
    subprocess.TimeoutExpired.
    """
    own = repository / ".git" / "info" / "exclude"
    # In a worktree, a submodule and the like a file says where the repository is.
    if not own.parents[1].is_dir():
        own = _asked(repository, "rev-parse", "--git-path", "info/exclude") or own
    settings = os.environ.get("XDG_CONFIG_HOME")
    everywhere = (Path(settings) if settings else home_dir() / ".config") / "git" / "ignore"
    return own, _asked(repository, "config", "--get", "--path", "core.excludesFile") or everywhere


def _asked(repository: Path, *question: str) -> Path | None:
    """The path that git answers with; None where it has none, or is not there."""
    with suppress(OSError):
        asked = run_git(repository, *question, timeout_s=_GIT_S)
        if asked.returncode == 0:
            return repository / os.fsdecode(asked.stdout).removesuffix("\n")
    return None
