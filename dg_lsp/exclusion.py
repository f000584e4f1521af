"""Files that the model never sees: secrets by their names, and what `.gitignore` and `.dgignore` name.

Only `.gitignore` and `.dgignore` can let a file back in (with `!`), and only what they excluded; a secret stays one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pathspec import GitIgnoreSpec
from pygls.uris import to_fs_path

from dg_lsp.rereading import Rereading

SECRETS = (
    ".env*",
    "*.env",
    "*.pem",
    "*.key",
    "*.ppk",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.asc",
    "*.gpg",
    # Keys have no extension, or a public half; identifiers.py, id_map.go and the like are code.
    "id_*",
    "!id_*.*",
    "id_*.pub",
    "id_*.key",
    "id_*.pem",
    "credentials",
    "credentials.*",
    ".credentials*",
    "*credentials*.json",
    "*credentials*.toml",
    "*credentials*.ini",
    "*credentials*.y*ml",
    "secrets.y*ml",
    "secrets.json",
    "secrets.toml",
    "secrets.ini",
    "*.secret",
    "*.secrets",
    "*service-account*.json",
    "*service_account*.json",
    "*.tfvars",
    "*.tfstate*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
    ".dockercfg",
    "**/.docker/config.json",
    "**/.kube/config",
    "kubeconfig",
    ".ssh/",
    ".aws/",
    ".gnupg/",
    "*_history",
)
_IGNORE_FILES = (".git/info/exclude", ".gitignore", ".dgignore")
_FILE_SCHEMES = ("file", "vscode-notebook-cell")

_secrets = GitIgnoreSpec.from_lines(SECRETS)


class Exclusions:
    """Answers for one workspace; reads ignore files again when they change."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._specs = Rereading(lambda text: GitIgnoreSpec.from_lines(_valid_lines(text)), clock_s)

    def excludes(self, uri: str, folder: Path | None = None) -> bool:
        """Whether the document may not be shown to the model. `folder`: the workspace folder that holds it."""
        if _is_secret(uri):
            return True
        path = file_of(uri)
        return path is not None and self._ignored(path, _top(path, folder))

    def _ignored(self, path: Path, top: Path) -> bool:
        # From the top down: what lies in an excluded folder can't be let in again, as in git.
        below = path.relative_to(top).parts
        for depth in range(1, len(below) + 1):
            is_folder = depth < len(below)
            if self._verdict(top, below[:depth], is_folder=is_folder):
                return True
        return False

    def _verdict(self, top: Path, below: tuple[str, ...], *, is_folder: bool) -> bool:
        """What the ignore files say of one folder or file; the deepest that says something decides."""
        for depth in reversed(range(len(below))):
            inside = PurePosixPath(*below[depth:]).as_posix() + ("/" if is_folder else "")
            holder = top.joinpath(*below[:depth])
            for name in reversed(_IGNORE_FILES):
                verdict = self._specs.get(holder / name).check_file(inside).include
                if verdict is not None:
                    return verdict
        return False


# Asked several times for each key.
@lru_cache(maxsize=256)
def _is_secret(uri: str) -> bool:
    return _secrets.match_file(name_of(uri).lower())


@lru_cache(maxsize=256)
def file_of(uri: str) -> Path | None:
    """The file behind a document, also a notebook's behind its cell; None for an untitled or remote one."""
    scheme, _, rest = uri.partition(":")
    if scheme not in _FILE_SCHEMES:
        return None
    found = to_fs_path(f"file:{rest.partition('#')[0]}")
    path = Path(found) if found else None
    return path if path and path.is_absolute() and "\0" not in str(path) else None


def name_of(uri: str) -> str:
    """The path in a URI of any scheme, without the slashes before it."""
    try:
        path = urlsplit(uri).path
    except ValueError:
        path = uri
    return unquote(path).lstrip("/")


def _top(path: Path, folder: Path | None) -> Path:
    """Where ignore files start to count: the repository, else the workspace folder, else the file's own folder."""
    for ancestor in path.parents:
        if (ancestor / ".git").exists():
            return ancestor
    return folder if folder and path.is_relative_to(folder) and path != folder else path.parent


def _valid_lines(text: str) -> list[str]:
    """Lines that git would take; a broken one is skipped as git skips it."""
    return [_inside_only(line) for line in text.splitlines() if _is_valid(line)]


def _inside_only(line: str) -> str:
    # To git `a/**` is what lies in a, not a itself; to pathspec it is the folder too.
    return f"{line}/*" if line.endswith("/**") else line


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
