"""Where editors for tests are kept: outside the tree, each in a folder that is whole or not there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import platformdirs


def cache_dir() -> Path:
    """`DG_LSP_EDITORS_DIR`, or a folder in the user's cache."""
    given = os.environ.get("DG_LSP_EDITORS_DIR")
    return Path(given) if given else Path(platformdirs.user_cache_dir("dg-lsp", appauthor=False)) / "editors"


def installed(name: str) -> Path | None:
    """The folder of something installed."""
    folder = cache_dir() / name
    return folder if folder.is_dir() else None


def install(name: str, build: Callable[[Path], None]) -> Path:
    """Let `build` fill a folder, unless it is there already. What was cut off half-way is begun anew."""
    folder, draft = cache_dir() / name, cache_dir() / f"{name}.draft"
    if not folder.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        click.echo(f"Installing {name} in {folder}")
        build(draft)
        draft.rename(folder)
    return folder


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it printed; its errors are shown where it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout
