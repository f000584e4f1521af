"""Sessions from a git repository's history: commits as somebody may have typed them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from dg_lsp.config.git import run_git
from dg_lsp.replay.generate import LANGUAGES, Edited, changes
from dg_lsp.replay.session import SessionError

GIT_S = 60.0
MAX_CHANGED_CHARS = 4000
"""More than this was not typed but pasted or generated."""


def edited_files(repository: Path, commits: int) -> list[Edited]:
    """What the latest `commits` commits that somebody could have typed did, oldest first. Raises SessionError."""
    found, taken = dict[str, Edited](), 0
    for commit in _git(repository, "rev-list", "--no-merges", "HEAD").split():
        files = {file.path: file for file in _typed(repository, commit)}
        # A session opens a document once: each file is as its last commit found it.
        found = files | found
        taken += bool(files)
        if taken == commits:
            break
    if not found:
        raise SessionError(f"The history of {repository} holds no change to code that somebody could have typed.")
    return list(found.values())


def _typed(repository: Path, commit: str) -> Iterator[Edited]:
    names = _git(repository, "diff-tree", "-r", "--no-commit-id", "--name-only", "--diff-filter=M", "-z", commit)
    for name in filter(None, names.split("\0")):
        if PurePosixPath(name).suffix in LANGUAGES:
            before, after = (_git(repository, "cat-file", "blob", f"{tree}:{name}") for tree in (f"{commit}^", commit))
            if 0 < sum(len(new) for _, _, new in changes(before, after)) <= MAX_CHANGED_CHARS:
                yield Edited(path=name, before=before, after=after)


def _git(repository: Path, *arguments: str) -> str:
    try:
        asked = run_git(repository, *arguments, timeout_s=GIT_S)
    except OSError as error:
        raise SessionError(f"git can't be run ({error.strerror}); it reads the history of a repository.") from None
    except subprocess.TimeoutExpired:
        raise SessionError(f"git did not answer within {GIT_S:g} s in {repository}.") from None
    if asked.returncode:
        reason = asked.stderr.decode(errors="replace").strip()
        raise SessionError(f"git can't read {repository} ({reason or 'unknown reason'}).")
    return asked.stdout.decode(errors="replace")
