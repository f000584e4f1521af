"""Files that the model never sees: secrets by their names, and what `.dgignore` and git's own ignore files name.

Only ignore files can let a file back in (with `!`), and only what they excluded; a secret stays one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pathspec import GitIgnoreSpec
from pygls.uris import to_fs_path

from dg_lsp.config.git_excludes import excludes_file
from dg_lsp.config.rereading import Rereading

SECRETS = (
    ".env*",
    "*.env",
    "*.env.*",
    "*.pem",
    "*.pem.*",
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
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
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
_FILE_SCHEMES = ("file", "vscode-notebook-cell")

_BACKUP = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|copy|tmp|\d+))+$")
"""What tools and people put behind a name; a copy is as secret as what it was made of."""

_secrets = GitIgnoreSpec.from_lines(SECRETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """Where ignore files count: `.dgignore` from `top` down, git's own so many folders further in."""

    top: Path
    git_depth: int


class Exclusions:
    """Answers for one workspace; reads ignore files again when they change."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._specs = Rereading(lambda text: GitIgnoreSpec.from_lines(_valid_lines(text)), clock_s)
        self._excludes_files: dict[Path, Path] = {}

    def excludes(self, uri: str, folder: Path | None = None) -> bool:
        """Whether the document may not be shown to the model. `folder`: the workspace folder that holds it."""
        if _is_secret(uri):
            return True
        path = file_of(uri)
        return path is not None and self._ignored(path, _ground(path, folder))

    def _ignored(self, path: Path, ground: _Ground) -> bool:
        # From the top down: what lies in an excluded folder can't be let in again, as in git.
        below = path.relative_to(ground.top).parts
        for depth in range(1, len(below) + 1):
            is_folder = depth < len(below)
            if self._verdict(ground, below[:depth], is_folder=is_folder):
                return True
        return False

    def _verdict(self, ground: _Ground, below: tuple[str, ...], *, is_folder: bool) -> bool:
        """What the ignore files say of one folder or file; the deepest that says something decides."""
        for depth in reversed(range(len(below))):
            inside = PurePosixPath(*below[depth:]).as_posix() + ("/" if is_folder else "")
            for file in self._files(ground, below[:depth]):
                verdict = self._specs.get(file).check_file(inside).include
                if verdict is not None:
                    return verdict
        return False

    def _files(self, ground: _Ground, below: tuple[str, ...]) -> Iterator[Path]:
        """The ignore files that count from one folder on, the weightiest first."""
        holder = ground.top.joinpath(*below)
        yield holder / ".dgignore"
        if len(below) >= ground.git_depth:
            yield holder / ".gitignore"
        if len(below) == ground.git_depth:
            yield holder / ".git" / "info" / "exclude"
            yield self._everywhere(holder)

    def _everywhere(self, repository: Path) -> Path:
        # To ask git takes milliseconds, so a session does it once for each repository.
        if repository not in self._excludes_files:
            self._excludes_files[repository] = excludes_file(repository)
        return self._excludes_files[repository]


# Asked several times for each key.
@lru_cache(maxsize=256)
def _is_secret(uri: str) -> bool:
    return _secrets.match_file(_BACKUP.sub("", name_of(uri).lower()))


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


def _ground(path: Path, folder: Path | None) -> _Ground:
    """git's files count in the repository, `.dgignore` also in the workspace folder around it; else each in the folder,
    or in the file's own."""
    folder = folder if folder and path.is_relative_to(folder) and path != folder else None
    repository = next((ancestor for ancestor in path.parents if (ancestor / ".git").exists()), folder or path.parent)
    top = folder if folder and repository.is_relative_to(folder) else repository
    return _Ground(top=top, git_depth=len(repository.parts) - len(top.parts))


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
