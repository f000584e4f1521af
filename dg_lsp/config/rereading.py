"""Small files that may change at any time, read again only when they did, and looked at once a second at most."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

LOOK_AGAIN_S = 1.0
MAX_FILE_NBYTES = 1024 * 1024


@dataclass(slots=True)
class _Held(Generic[T]):
    looked_at_s: float
    signature: tuple[int, int] | None
    value: T


class Rereading(Generic[T]):
    """What `parse` makes of a file's text; a missing or unreadable file is the empty text."""

    def __init__(self, parse: Callable[[str], T], clock_s: Callable[[], float] = time.monotonic) -> None:
        self._parse = parse
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
            held = self._held[path] = _Held(now_s, signature, self._parse(_read(path) if signature else ""))
        held.looked_at_s = now_s
        return held.value


def _signature(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_FILE_NBYTES)
    except OSError:
        return ""
