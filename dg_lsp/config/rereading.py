"""Small files of a project, which may be anything and change at any time. For threads that may wait: see `looking`."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

LOOK_AGAIN_S = 1.0


class NotRead(Exception):
    """A file is there and was not read. The message says why, in a clause without the file's name."""


@dataclass(slots=True)
class _Held(Generic[T]):
    looked_at_s: float
    signature: tuple[int, ...] | None
    value: T


class Rereading(Generic[T]):
    """What `parse` makes of a file's text, and `refuse` of a reason why there is none; what is missing is empty.

    A file is read again when it changed, and looked at once a second at most.
    """

    def __init__(
        self,
        parse: Callable[[str], T],
        refuse: Callable[[NotRead], T],
        max_nbytes: int,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parse = parse
        self._refuse = refuse
        self._max_nbytes = max_nbytes
        self._clock_s = clock_s
        self._held: dict[Path, _Held[T]] = {}

    def get(self, path: Path) -> T:
        """The file as it is now, or was a moment ago."""
        now_s = self._clock_s()
        held = self._held.get(path)
        if held and now_s - held.looked_at_s < LOOK_AGAIN_S:
            return held.value
        signature = _signature(path)
        if held is None or held.signature != signature:
            held = self._held[path] = _Held(now_s, signature, self._value(path))
        held.looked_at_s = now_s
        return held.value

    def _value(self, path: Path) -> T:
        try:
            return self._parse(read_regular(path, self._max_nbytes))
        except NotRead as reason:
            return self._refuse(reason)


def read_regular(path: Path, max_nbytes: int) -> str:
    """The text of a regular file; empty where there is none or it can't be opened. Raises NotRead for anything else.

    Neither a named pipe nor a device is waited for; the empty device is an empty file.
    """
    try:
        # Looked at before it is opened, since to open a device may do something, and after, since it may have changed.
        if not stat.S_ISREG(path.stat().st_mode):
            return _of_no_file(path)
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        return ""
    with open(opened, "rb") as file:  # noqa: PTH123 a descriptor
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return _of_no_file(path)
        try:
            data = file.read(max_nbytes + 1)
        except OSError:
            return ""
    if len(data) > max_nbytes:
        raise NotRead(f"is longer than {max_nbytes // 1024} KiB")
    return data.decode(errors="replace")


def _of_no_file(path: Path) -> str:
    if path.is_dir() or path.resolve() == Path(os.devnull):
        return ""
    raise NotRead("is not a regular file")


def _signature(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode
