"""Runs git in repositories that may be hostile: no command that their settings name is run."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from engine.common.files import open_regular
from engine.common.processes import home_dir

_OFF = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.pager=cat", "log.showSignature=false")
_ENVIRONMENT = {
    # A partial clone would fetch what is missing, with commands and addresses of its own choice.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_OF_ANOTHER = {f"GIT_{name}" for name in ("DIR", "WORK_TREE", "COMMON_DIR", "INDEX_FILE", "OBJECT_DIRECTORY")}
"""Variables that would override the repository; an editor started by git has them set."""
_GIT_S = 3.0
_SUFFIX = ".exe" if sys.platform == "win32" else ""
_LATE_S = 1.0
"""How long after its limit git is ended by `timeout`, where this process is gone."""
_READ = ("HEAD", "config", "config.worktree", "commondir")
"""Files that git reads first, and would hang at if they were pipes."""


def run_git(repository: Path, *arguments: str, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    """Run one of git's plumbing commands, which know neither pagers nor signatures nor filters; or `log` without a
    patch, whose pager and check of signatures are switched off here.

    Raises OSError where there is no git, subprocess.TimeoutExpired, NotRead for a repository that git would hang at.
    """
    for file in _READ:
        with suppress(FileNotFoundError, NotADirectoryError), open_regular(repository / ".git" / file):
            pass
    settings = [word for setting in _OFF for word in ("-c", setting)]
    with subprocess.Popen(
        [*_limited(timeout_s), _found("git"), "--no-pager", *settings, "-C", str(repository), *arguments],
        env={name: value for name, value in os.environ.items() if name not in _OF_ANOTHER} | _ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=None if sys.platform == "win32" else 0,
    ) as child:
        try:
            said, complained = child.communicate(timeout=timeout_s)
        except BaseException:
            _end(child)
            raise
    return subprocess.CompletedProcess(child.args, child.returncode, said, complained)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill git, the `timeout` around it, and what git has started."""
    if sys.platform == "win32":
        child.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def _limited(timeout_s: float) -> list[str | Path]:
    """The command `timeout`, which ends git even if this process is gone; empty where there is none."""
    # That of Windows does something else.
    if sys.platform == "win32":
        return []
    try:
        return [_found("timeout"), "-s", "KILL", f"{math.ceil(timeout_s + _LATE_S)}"]
    except FileNotFoundError:
        return []


def _found(name: str) -> Path:
    """A program's absolute path. The working directory is never searched, whatever the PATH says."""
    # Not shutil.which, which begins in the working directory on Windows.
    for folder in map(Path, os.get_exec_path()):
        if folder.is_absolute() and os.access(folder / (name + _SUFFIX), os.X_OK):
            return folder / (name + _SUFFIX)
    raise FileNotFoundError(2, f"No {name} is on the PATH")


def ignore_files(repository: Path) -> tuple[Path, Path]:
    """Git's ignore files outside the work tree, higher precedence first: `info/exclude`, which worktrees share, and
    `core.excludesFile` or its default.

    They may not exist. Git itself is queried, since its settings include one another; see gitignore(5). Raises
    subprocess.TimeoutExpired, NotRead.
    """
    own = repository / ".git" / "info" / "exclude"
    # In a worktree, a submodule and the like a file says where the repository is.
    if not own.parents[1].is_dir():
        own = _path_from_git(repository, "rev-parse", "--git-path", "info/exclude") or own
    settings = os.environ.get("XDG_CONFIG_HOME")
    everywhere = (Path(settings) if settings else home_dir() / ".config") / "git" / "ignore"
    return own, _path_from_git(repository, "config", "--get", "--path", "core.excludesFile") or everywhere


def _path_from_git(repository: Path, *question: str) -> Path | None:
    """The path that git answers with; None where it has none, or there is no git."""
    with suppress(OSError):
        answer = run_git(repository, *question, timeout_s=_GIT_S)
        if answer.returncode == 0:
            return repository / os.fsdecode(answer.stdout).removesuffix("\n")
    return None
