"""Files that the model never sees: secrets by their names, and what `.dgignore` and git's own ignore files name.

Only ignore files can let a file back in (with `!`), and only what they excluded; a secret stays one.
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
"""The scheme of a cell's URI, whose path is its notebook's."""
_FILE_SCHEMES = ("file", NOTEBOOK_CELL)
P = TypeVar("P", bound=PurePath)
MAX_IGNORE_FILE_NBYTES = 256 * 1024
MAX_DEPTH = 400
"""Folders around a file, and itself; what lies deeper is not shown."""
ASK_AGAIN_S = 5.0
"""After which git is asked again where it did not answer in time."""
NOT_YET = "its project's files are not read yet"
NAMED = "its name or an ignore file says so"

_BACKUP = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|copy|tmp|\d++))+$")
"""What tools and people put behind a name; a copy is as secret as what it was made of."""

_IN_GIT = re.compile(r"(?P<tree>.*?)/\.git/+(?:[^/]*:/*|[^/]+/+)(?P<file>.+)", re.DOTALL)
_BEHIND_PATH = re.compile(r"[?#].*", re.DOTALL)
_secrets = Patterns(Path(__file__).with_name("secrets.dgignore").read_text(encoding="utf-8").splitlines())


class _Unreadable(BadInput):
    """An ignore file that can't be heeded. The message is a clause with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """Where ignore files count: `.dgignore` from `top` down, git's own so many folders further in."""

    top: Path
    git_depth: int


class _Folder:
    """A folder that is not excluded, as it was found once. `below`: its path from the top. `heeded`: ignore files in it
    and above that say something, the weightiest first, each with how deep below the top it lies."""

    def __init__(self, below: tuple[str, ...], heeded: tuple[tuple[int, Path, Patterns | str], ...]) -> None:
        self.below = below
        self.heeded = heeded
        self.inner: dict[str, _Folder | None] = {}
        """None: an excluded one."""

    def excludes(self, name: str) -> bool:
        """What the ignore files say of a file in it, or a folder, whose name ends in a slash; the deepest that says
        something decides."""
        for depth, file, patterns in self.heeded:
            if isinstance(patterns, str):
                raise _Unreadable(f"{file} {patterns}")
            verdict = patterns.verdict("/".join((*self.below[depth:], name)))
            if verdict is not None:
                return verdict
        return False


class Seen(dict[_Ground, _Folder]):
    """What one look found on its way, for others at the same time; it is not looked at again."""

    def __init__(self) -> None:
        self._repositories: dict[Path, Path | None] = {}

    def repository(self, folder: Path) -> Path | None:
        """The innermost one of git that a folder is, or lies in."""
        found, asked = None, list[Path]()
        for each in (folder, *folder.parents):
            if each in self._repositories:
                found = self._repositories[each]
                break
            asked.append(each)
            if (each / ".git").exists():
                found = each
                break
        self._repositories |= dict.fromkeys(asked, found)
        return found


class Exclusions:
    """Answers for one workspace; reads ignore files again when they change.

    `look` touches the disk and may be called in any thread; the rest only knows what it found.
    """

    def __init__(self) -> None:
        self._patterns = Rereading[Patterns | str](_patterns, str, MAX_IGNORE_FILE_NBYTES)
        self._git_files: dict[Path, tuple[Path, Path] | float] = {}
        """Where it did not answer, the time."""
        self._reasons: dict[str, str] = {}
        self.unheeded = set[str]()
        """Ignore files that could not be heeded, and why, in clauses; what they are about is hidden."""

    def look(self, uri: str, folders: Sequence[Path] = (), seen: Seen | None = None) -> None:
        """Work out whether a document is excluded. `folders`: those of the workspace."""
        self._reasons[uri] = self.reason(uri, folders, seen=seen)

    @property
    def uris(self) -> Sequence[str]:
        """Of all of which something is known. In any thread."""
        return list(self._reasons)

    def forget(self, uri: str) -> None:
        self._reasons.pop(uri, None)

    def why_excluded(self, uri: str) -> str:
        """Why the document may not be shown to the model, in a clause; empty where it may."""
        if _is_secret(uri):
            return NAMED
        return "" if place_of(uri) is None else self._reasons.get(uri, NOT_YET)

    def reason(self, uri: str, folders: Sequence[Path], *, is_folder: bool = False, seen: Seen | None = None) -> str:
        """Why a document, or all in a folder, may not be shown to the model, as it is now, or as others have `seen` the
        folders around it; empty where it may. Touches the disk, and keeps nothing but what is `unheeded`."""
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
        """A folder with its own ignore files before those `above` it."""
        own = ((len(below), file, self._patterns.get(file)) for file in self._files(ground, below))
        return _Folder(below, (*(each for each in own if each[2]), *above))

    def _files(self, ground: _Ground, below: tuple[str, ...]) -> Iterator[Path]:
        """The ignore files that count from one folder on, the weightiest first."""
        holder = ground.top.joinpath(*below)
        yield holder / ".dgignore"
        if len(below) >= ground.git_depth:
            yield holder / ".gitignore"
        if len(below) == ground.git_depth:
            yield from self._of_git(holder)

    def _of_git(self, repository: Path) -> tuple[Path, Path]:
        """To ask git takes milliseconds, so a session does it once for each repository. While it does not answer it is
        not known what it ignores."""
        held = self._git_files.get(repository, -math.inf)
        if not isinstance(held, tuple) and time.monotonic() - held > ASK_AGAIN_S:
            try:
                held = ignore_files(repository)
            except (TimeoutExpired, NotRead):
                held = time.monotonic()
            self._git_files[repository] = held
        if not isinstance(held, tuple):
            raise _Unreadable(f"git does not answer in {repository}, so it is not known what it ignores")
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
    """The file behind a document, also a notebook's behind its cell; None for an untitled or remote one."""
    return place_of(uri) if uri.partition(":")[0].lower() in _FILE_SCHEMES else None


@lru_cache(maxsize=256)
def place_of(uri: str) -> Path | None:
    """Where a document's file is, was or will be, whatever shows it: schemes of version control name older texts of a
    file, and what must not be seen of the one must not be of the other. None where nothing says so."""
    scheme, _, rest = uri.partition(":")
    scheme, rest = scheme.lower(), _BEHIND_PATH.sub("", rest)
    authority = rest[2:].partition("/")[0] if rest.startswith("//") and scheme not in _FILE_SCHEMES else ""
    if authority and not scheme.startswith("git"):
        return None  # A file of another machine. What git is asked for has anything there.
    rest = rest.removeprefix(f"//{authority}") if authority else rest
    if rest.startswith("//") and (os.name != "nt" or rest.lower().startswith("//localhost/")):
        # Another host's files are none of this machine's paths, but on Windows; what this one's would be is judged.
        rest = "".join(rest[2:].partition("/")[1:])
    # Elsewhere than on Windows names are bytes, of whatever encoding.
    found = to_fs_path(f"file:{rest}") if os.name == "nt" else os.fsdecode(unquote_to_bytes(rest))
    path = Path(found) if found else None
    if path is None or not path.is_absolute() or "\0" in str(path):
        return None
    return path if scheme in _FILE_SCHEMES else _checked_out(path)


def _checked_out(path: Path) -> Path:
    """Some schemes name what git holds: its folder, a revision, and the file in the work tree."""
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
    """git's files count in the repository, `.dgignore` also in the workspace folder around it; else each in the folder,
    or in the file's own."""
    folder = folder if folder and path.is_relative_to(folder) and path != folder else None
    repository = seen.repository(path.parent) or folder or path.parent
    top = folder if folder and repository.is_relative_to(folder) else repository
    return _Ground(top=top, git_depth=len(repository.parts) - len(top.parts))
