"""Files of unknown origin, read with a bound: a pipe, a device or a file without end can't hang or fill the reader. And
files of ours, replaced in one move."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from engine.common.errors import BadInput, EngineError, NotRead
from engine.common.sizes import decimal_bytes

_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe that nobody writes to would wait; for an ordinary file it changes nothing."""


def read_regular(path: Path, most_nbytes: int) -> bytes:
    """The bytes of an ordinary file, links followed. Raises NotRead for anything else and for more, or OSError."""
    with open_regular(path) as stream:
        # A file may grow, and those of /proc have no size: only the reading itself is a bound.
        content = stream.read(most_nbytes + 1)
    if len(content) > most_nbytes:
        raise NotRead(path, f"is larger than {decimal_bytes(most_nbytes)}")
    return content


def open_regular(path: Path) -> BinaryIO:
    """An ordinary file to read, links followed. Raises NotRead for anything else, or OSError."""
    # Looked at before it is opened, since to open a device may do something, and after, since it may have changed; to
    # open a folder fails by itself.
    if path.is_dir() or stat.S_ISREG(path.stat().st_mode):
        stream = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT))  # noqa: SIM115 who asked closes it
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return stream
        stream.close()
    raise NotRead(path, "is no ordinary file")


def is_folder(path: Path) -> bool:
    """Whether it is one, as far as can be told: a name may be too long for any, or lie where nobody may look."""
    try:
        return path.is_dir()
    except OSError:
        return False


def check_folder(path: Path) -> None:
    """Raises BadInput for what is none, where code is to be read."""
    if not is_folder(path):
        raise BadInput(f"{path} is no folder: name one with code in it.")


def sendable(path: Path) -> str:
    """A path as text; empty where it is none, so that it can't be sent."""
    return str(path) if is_utf8(path) else ""


def is_utf8(path: str | Path) -> bool:
    """Whether a path is text, which can be kept and sent; where names are bytes, it may be none."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def writing(path: Path | None, way_out: str, kind: type[EngineError] = EngineError) -> Generator[None]:
    """A disk may be full or gone: that is raised as an error of that `kind`, which ends in the way out."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path} can't be written to ({error.strerror or error}): {way_out}.") from None


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A draft beside a file, which takes its place in one move at the end of the block; a cut leaves the old one."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    try:
        yield draft
    except BaseException:
        # A full disk needs its room.
        with suppress(OSError):
            draft.unlink()
        raise
    draft.replace(path)
