"""Files of unknown origin, read with a bound: a pipe, a device or a file without end can't hang or fill the reader. And
files of ours, replaced in one move."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from engine.core.errors import BadInput
from engine.core.sizes import decimal_bytes

_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe that nobody writes to would wait; for an ordinary file it changes nothing."""


def read_regular(path: Path, most_nbytes: int) -> bytes:
    """The bytes of an ordinary file, links followed. Raises BadInput for anything else and for more, or OSError."""
    with open_regular(path) as stream:
        # A file may grow, and those of /proc have no size: only the reading itself is a bound.
        content = stream.read(most_nbytes + 1)
    if len(content) > most_nbytes:
        raise BadInput(f"{path} is larger than {decimal_bytes(most_nbytes)}: name a smaller file.")
    return content


def open_regular(path: Path) -> BinaryIO:
    """An ordinary file to read, links followed. Raises BadInput for anything else, or OSError."""
    stream = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT))  # noqa: SIM115
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    stream.close()
    raise BadInput(f"{path} is no ordinary file: name one that is.")


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A draft beside a file, which takes its place in one move at the end of the block; a cut leaves the old one."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    yield draft
    draft.replace(path)
