"""Small project files, read again when they change. For threads that may block: see `looking`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from engine.common.errors import NotRead
from engine.common.files import read_regular
from engine.common.textfile import mark_of

T = TypeVar("T")


class Rereading(Generic[T]):
    """Cached results of `parse(bytes)`, or of `refuse(clause)` where a file is not read.

    A file that is missing or can't be opened counts as empty, and so do a folder and the empty device.

    A file is read again once it has changed.
    """

    def __init__(
        self,
        parse: Callable[[bytes], T],
        refuse: Callable[[str], T],
        max_nbytes: int,
    ) -> None:
        self._parse = parse
        self._refuse = refuse
        self._max_nbytes = max_nbytes
        self._held: dict[Path, tuple[int | None, T]] = {}

    def get(self, path: Path) -> T:
        signature = file_signature(path)
        held = self._held.get(path)
        if held is None or held[0] != signature:
            held = self._held[path] = signature, self._value(path)
        return held[1]

    def _value(self, path: Path) -> T:
        try:
            raw = read_regular(path, self._max_nbytes)
        except NotRead as reason:
            if path.resolve() != Path(os.devnull):
                return self._refuse(reason.why)
            raw = b""
        except (OSError, ValueError):
            raw = b""
        return self._parse(raw)


def as_marked(raw: bytes) -> str:
    """Decode bytes by their byte order mark; invalid bytes are replaced."""
    mark, encoding = mark_of(raw)
    return raw[len(mark) :].decode(encoding, errors="replace")


def file_signature(path: Path) -> int | None:
    """A number that differs once the file has changed; None where there is no such file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return hash((found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode))
