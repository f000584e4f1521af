"""Git repositories for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def commit(folder: Path, files: Mapping[str, str]) -> None:
    """Write files and commit them; a folder that is no repository becomes one."""
    if not (folder / ".git").exists():
        _git(folder, "init", "-q")
    for name, text in files.items():
        (folder / name).write_text(text)
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "next")


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True)
