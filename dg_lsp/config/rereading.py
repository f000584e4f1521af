"""Small files of a project, which may be anything and change at any time. For threads that may wait: see `looking`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from engine.core.errors import NotRead
from engine.core.files import read_regular

T = TypeVar("T")

LOOK_AGAIN_S = 1.0


@dataclass(slots=True)
class _Held(Generic[T]):
    looked_at_s: float
    signature: tuple[int, ...] | None
    value: T


class Rereading(Generic[T]):
    """What `parse` makes of a file's text, and `refuse` of a clause that says why it is not read.

    What is missing or can't be opened is empty, and so is a folder and the empty device.

    A file is read again when it changed, and looked at once a second at most.
    """

    def __init__(
        self,
        parse: Callable[[str], T],
        refuse: Callable[[str], T],
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

    def forget(self) -> None:
        """Read again whatever is asked for next."""
        self._held.clear()

    def _value(self, path: Path) -> T:
        try:
            text = read_regular(path, self._max_nbytes).decode(errors="replace")
        except NotRead as reason:
            if path.resolve() != Path(os.devnull):
                return self._refuse(reason.why)
            text = ""
        except (OSError, ValueError):
            text = ""
        return self._parse(text)


def _signature(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode
