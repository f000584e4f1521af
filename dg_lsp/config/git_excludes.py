"""The file in which a user tells git what to leave out of every repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from dg_lsp.config.git import run_git
from engine.core.processes import home_dir

_GIT_S = 1.0


def excludes_file(repository: Path) -> Path:
    """git's `core.excludesFile` as it holds in a folder, else the file that git takes where nothing is set.

    The file may not exist. Asks git itself, whose settings include one another; see gitignore(5) for the default.
    """
    told = _told_by_git(repository)
    if told is None:
        settings = os.environ.get("XDG_CONFIG_HOME")
        return (Path(settings) if settings else home_dir() / ".config") / "git" / "ignore"
    return repository / told


def _told_by_git(repository: Path) -> str | None:
    try:
        asked = run_git(repository, "config", "--get", "--path", "core.excludesFile", timeout_s=_GIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.fsdecode(asked.stdout).removesuffix("\n") if asked.returncode == 0 else None
