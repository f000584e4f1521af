"""`dg-lsp files`."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import click

from dg_lsp.config.exclusion import Exclusions
from dg_lsp.config.git import run_git
from dg_lsp.config.walking import files_below
from engine.common.errors import BadInput, NotRead
from engine.common.exits import one_line_errors
from engine.common.files import check_folder
from engine.common.options import A_PATH
from engine.common.terminal import is_read_here, shown, shown_name

_SINCE = "365 days ago"
_GIT_S = 20.0


@click.command()
@click.argument("folder", type=A_PATH, default=Path(), help="A folder, usually a repository.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object, with the commit and when each file last changed in git.",
)
@one_line_errors()
def files(folder: Path, as_json: bool) -> None:
    """List the files that may be shown to the model. Files that ignore files or the list of secrets exclude, hidden
    files and links are left out. Only ignore files are read."""
    check_folder(folder)
    try:
        root = folder.resolve()
    except OSError as error:
        raise BadInput(f"{folder} can't be looked at ({error.strerror}): name a folder with code in it.") from None
    exclusions = Exclusions()
    paths = [
        path.relative_to(root).as_posix()
        for path in files_below([root], exclusions, lambda name: True)
        if not exclusions.reason(path.as_uri(), [root])
    ]
    unheeded = sorted(exclusions.unheeded)
    for refusal in unheeded:
        click.echo(shown(f"dg-lsp: {refusal}: no file that it applies to is listed."), err=True)
    if not as_json and is_read_here():
        click.echo("".join(f"{shown_name(path)}\n" for path in paths), nl=False)
        return
    if not as_json:
        click.echo(os.fsencode("".join(f"{path}\n" for path in paths)), nl=False)
        return
    changed = changed_at(root)
    listed = [{"path": path, "changed": changed.get(path)} for path in paths]
    click.echo(json.dumps({"folder": str(root), "commit": commit_of(root), "files": listed, "unheeded": unheeded}))


def commit_of(folder: Path) -> str | None:
    """The commit that is checked out in a folder; None without git."""
    return _git(folder, "rev-parse", "--verify", "HEAD").strip() or None


def changed_at(folder: Path) -> dict[str, int]:
    """When files below a folder were last committed, in seconds since 1970, by path: those of the last year."""
    found: dict[str, int] = {}
    # A zero byte is in no name, so that no name can look like a commit.
    options = (f"--since={_SINCE}", "--format=%x00%ct", "--name-only", "--relative", "--no-renames", "-z")
    for commit in f"\0{_git(folder, 'log', *options)}".split("\0\0")[1:]:
        at, _, names = commit.removesuffix("\0").partition("\0\n")
        for name in filter(None, names.split("\0")):
            found.setdefault(name, int(at))
    return found


def _git(folder: Path, *arguments: str) -> str:
    with suppress(OSError, NotRead, subprocess.TimeoutExpired):
        answer = run_git(folder, *arguments, timeout_s=_GIT_S)
        if answer.returncode == 0:
            return answer.stdout.decode(errors="surrogateescape")
    return ""
