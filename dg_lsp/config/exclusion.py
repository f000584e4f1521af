"""Files that the model never sees: secrets, by their names, and files that `.dgignore` or git's ignore files exclude.

Only an ignore file can include a file again (with `!`), and only one that ignore files exclude; secrets stay excluded.
"""

from __future__ import annotations

import math
import os
import re
import time
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath, PurePosixPath
from subprocess import TimeoutExpired
from typing import TypeVar
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from pygls.uris import to_fs_path

from dg_lsp.config.git import ignore_files
from dg_lsp.config.patterns import Patterns, TooMuch
from dg_lsp.config.rereading import Rereading, as_marked
from engine.common.errors import BadInput, NotRead

NOTEBOOK_CELL = "vscode-notebook-cell"
"""The scheme of a notebook cell's URI; its path is the notebook's."""
_FILE_SCHEMES = ("file", NOTEBOOK_CELL)
P = TypeVar("P", bound=PurePath)
MAX_IGNORE_FILE_NBYTES = 256 * 1024
MAX_DEPTH = 400
"""Files nested more deeply are excluded."""
ASK_AGAIN_S = 5.0
"""When git did not answer in time, it is queried again after this long."""
NOT_YET = "its project's files were not read yet"
NAMED = "its name or an ignore file says so"

_BACKUP = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|copy|tmp|\d++))+$")
"""Endings of copies; a copy of a secret is a secret."""

_IN_GIT = re.compile(r"(?P<tree>.*?)/\.git/+(?:[^/]*:/*|[^/]+/+)(?P<file>.+)", re.DOTALL)
_AFTER_PATH = re.compile(r"[?#].*", re.DOTALL)
_secrets = Patterns(Path(__file__).with_name("secrets.dgignore").read_text(encoding="utf-8").splitlines())


class _Unreadable(BadInput):
    """An ignore file that can't be read. The message is a clause with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """Where ignore files apply: `.dgignore` from `top` down, git's own from `git_depth` folders further in."""

    top: Path
    git_depth: int


class _Folder:
    """A folder that is not excluded. `below`: its path from the top. `heeded`: the non-empty ignore files in it and
    above, highest precedence first, each with its depth below the top."""

    def __init__(self, below: tuple[str, ...], heeded: tuple[tuple[int, Path, Patterns | str], ...]) -> None:
        self.below = below
        self.heeded = heeded
        self.inner: dict[str, _Folder | None] = {}
        """None: an excluded one."""

    def excludes(self, name: str) -> bool:
        """Whether the ignore files exclude a file in it, or a folder, whose name ends in a slash; the deepest one that
        matches decides."""
        for depth, file, patterns in self.heeded:
            if isinstance(patterns, str):
                raise _Unreadable(f"{file} {patterns}")
            verdict = patterns.verdict("/".join((*self.below[depth:], name)))
            if verdict is not None:
                return verdict
        return False


class Seen(dict[_Ground, _Folder]):
    """Folders that one look has read, shared with others at the same time."""

    def __init__(self) -> None:
        self._repositories: dict[Path, Path | None] = {}

    def repository(self, folder: Path) -> Path | None:
        """The innermost git repository that a folder is in."""
        found, passed = None, list[Path]()
        for each in (folder, *folder.parents):
            if each in self._repositories:
                found = self._repositories[each]
                break
            passed.append(each)
            if (each / ".git").exists():
                found = each
                break
        self._repositories |= dict.fromkeys(passed, found)
        return found


class Exclusions:
    """Which files of one workspace are excluded; ignore files are read again when they change.

    `look` touches the disk and may run in any thread; the other methods only know what it found.
    """

    def __init__(self) -> None:
        self._patterns = Rereading[Patterns | str](_patterns, str, MAX_IGNORE_FILE_NBYTES)
        self._git_files: dict[Path, tuple[Path, Path] | float] = {}
        """A time: when git did not answer."""
        self._reasons: dict[str, str] = {}
        self.unheeded = set[str]()
        """Clauses: ignore files that could not be read, and why. Files that they may apply to are excluded."""

    def look(self, uri: str, folders: Sequence[Path] = (), seen: Seen | None = None) -> None:
        """Find out whether a document is excluded. `folders`: the workspace's."""
        self._reasons[uri] = self.reason(uri, folders, seen=seen)

    @property
    def uris(self) -> Sequence[str]:
        """All documents that were looked at. In any thread."""
        return list(self._reasons)

    def forget(self, uri: str) -> None:
        self._reasons.pop(uri, None)

    def why_excluded(self, uri: str) -> str:
        """A clause: why the document is excluded; empty if it is not."""
        if _is_secret(uri):
            return NAMED
        return "" if place_of(uri) is None else self._reasons.get(uri, NOT_YET)

    def reason(self, uri: str, folders: Sequence[Path], *, is_folder: bool = False, seen: Seen | None = None) -> str:
        """A clause: why a document, or everything in a folder, is excluded now; empty if it is not. `seen`: folders
        that were read already. Touches the disk."""
        path = place_of(uri)
        if path is None:
            return ""
        try:
            real = path.resolve()
            folder = innermost(path, folders)
            real_folder = innermost(real, [each.resolve() for each in folders])
            if folder and not real_folder:
                return f"it is a link to {real}, out of the workspace"
            places = {path: folder, real: real_folder}
            seen = Seen() if seen is None else seen
            hidden = any(
                _is_secret(place.as_uri())
                or self._ignored(place, _ground(place, around, seen), seen, is_folder=is_folder)
                for place, around in places.items()
            )
        except _Unreadable as refused:
            self.unheeded.add(str(refused))
            return str(refused)
        except (OSError, RuntimeError, ValueError) as error:
            return f"its file can't be looked at ({error})"
        return NAMED if hidden else ""

    def _ignored(self, path: Path, ground: _Ground, seen: Seen, *, is_folder: bool) -> bool:
        below = path.relative_to(ground.top).parts
        if not below:
            return False
        if ground not in seen:
            seen[ground] = self._folder(ground, (), ())
        folder = seen[ground]
        # From the top down: what lies in an excluded folder can't be let in again, as in git.
        for depth, name in enumerate(below[:-1], 1):
            if name not in folder.inner:
                hidden = folder.excludes(f"{name}/")
                folder.inner[name] = None if hidden else self._folder(ground, below[:depth], folder.heeded)
            inner = folder.inner[name]
            if inner is None:
                return True
            folder = inner
        return folder.excludes(below[-1] + "/" * is_folder)

    def _folder(
        self, ground: _Ground, below: tuple[str, ...], above: tuple[tuple[int, Path, Patterns | str], ...]
    ) -> _Folder:
        """A folder with its own ignore files before those from `above`."""
        own = ((len(below), file, self._patterns.get(file)) for file in self._files(ground, below))
        return _Folder(below, (*(each for each in own if each[2]), *above))

    def _files(self, ground: _Ground, below: tuple[str, ...]) -> Iterator[Path]:
        """The ignore files that apply from one folder on, highest precedence first."""
        holder = ground.top.joinpath(*below)
        yield holder / ".dgignore"
        if len(below) >= ground.git_depth:
            yield holder / ".gitignore"
        if len(below) == ground.git_depth:
            yield from self._of_git(holder)

    def _of_git(self, repository: Path) -> tuple[Path, Path]:
        """Git's global ignore files, queried once a session and repository, as that takes milliseconds. Raises
        _Unreadable while git does not answer."""
        held = self._git_files.get(repository, -math.inf)
        if not isinstance(held, tuple) and time.monotonic() - held > ASK_AGAIN_S:
            try:
                held = ignore_files(repository)
            except (TimeoutExpired, NotRead):
                held = time.monotonic()
            self._git_files[repository] = held
        if not isinstance(held, tuple):
            raise _Unreadable(f"git does not answer in {repository}, so nobody knows what it ignores")
        return held


def _patterns(raw: bytes) -> Patterns | str:
    # git knows no mark but that of UTF-8; what it makes of a file comes last, and so has the last word.
    texts = dict.fromkeys((as_marked(raw), raw.removeprefix(BOM_UTF8).decode(errors="replace")))
    try:
        return Patterns(line.removesuffix("\r") for text in texts for line in text.split("\n"))
    except TooMuch as reason:
        return str(reason)


# Asked several times for each key.
@lru_cache(maxsize=256)
def _is_secret(uri: str) -> bool:
    # From the top down, as a folder may be secret and all in it.
    parts = PurePosixPath(_BACKUP.sub("", name_of(uri).lower())).parts
    return len(parts) > MAX_DEPTH or any(
        _names_secret("/".join(parts[:depth]) + ("/" if depth < len(parts) else ""))
        for depth in range(1, len(parts) + 1)
    )


# Files share the folders that they are in.
@lru_cache(maxsize=512)
def _names_secret(path: str) -> bool:
    return _secrets.verdict(path) is True


@lru_cache(maxsize=256)
def file_of(uri: str) -> Path | None:
    """The file of a document, or of a cell's notebook; None for an untitled or remote one."""
    return place_of(uri) if uri.partition(":")[0].lower() in _FILE_SCHEMES else None


@lru_cache(maxsize=256)
def place_of(uri: str) -> Path | None:
    """The path of a document's file, for any URI scheme: version control names older texts of a file, and they are
    excluded with it. None where the URI names no path."""
    scheme, _, rest = uri.partition(":")
    scheme, rest = scheme.lower(), _AFTER_PATH.sub("", rest)
    authority = rest[2:].partition("/")[0] if rest.startswith("//") and scheme not in _FILE_SCHEMES else ""
    if authority and not scheme.startswith("git"):
        return None  # A file on another machine; in git's schemes that part may be anything.
    rest = rest.removeprefix(f"//{authority}") if authority else rest
    if rest.startswith("//") and (os.name != "nt" or rest.lower().startswith("//localhost/")):
        # Another host's files are none of this machine's paths, but on Windows; what this one's would be is judged.
        rest = "".join(rest[2:].partition("/")[1:])
    # Except on Windows, names are bytes in any encoding.
    found = to_fs_path(f"file:{rest}") if os.name == "nt" else os.fsdecode(unquote_to_bytes(rest))
    path = Path(found) if found else None
    if path is None or not path.is_absolute() or "\0" in str(path):
        return None
    return path if scheme in _FILE_SCHEMES else _checked_out(path)


def _checked_out(path: Path) -> Path:
    """The file in the work tree, for a path inside `.git` that names a revision of it."""
    held = _IN_GIT.fullmatch(path.as_posix())
    return Path(held["tree"] or "/", held["file"]) if held else path


def innermost(path: P, folders: Iterable[P]) -> P | None:
    holding = [folder for folder in folders if path.is_relative_to(folder)]
    return max(holding, key=lambda folder: len(folder.parts), default=None)


def name_of(uri: str) -> str:
    """The path in a URI of any scheme, without the slashes before it."""
    try:
        path = urlsplit(uri).path
    except ValueError:
        path = uri
    return unquote(path).lstrip("/")


def _ground(path: Path, folder: Path | None, seen: Seen) -> _Ground:
    """Git's ignore files apply in the repository, `.dgignore` also in the workspace folder around it. Without a
    repository both apply in the workspace folder, or in the file's folder."""
    folder = folder if folder and path.is_relative_to(folder) and path != folder else None
    repository = seen.repository(path.parent) or folder or path.parent
    top = folder if folder and repository.is_relative_to(folder) else repository
    return _Ground(top=top, git_depth=len(repository.parts) - len(top.parts))
