"""Counts of suggestions shown, accepted and rejected, kept on this machine. No text, no file names."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path

from engine.common.errors import EngineError
from engine.common.files import replacing
from engine.common.runtime_paths import state_dir

_SCHEMA = """
CREATE TABLE IF NOT EXISTS counts (
    day TEXT, language TEXT, event TEXT, times INTEGER NOT NULL, chars INTEGER NOT NULL,
    PRIMARY KEY (day, language, event)
)
"""
_ADD = """
INSERT INTO counts VALUES (?, ?, ?, 1, ?)
ON CONFLICT DO UPDATE SET times = times + 1, chars = chars + excluded.chars
"""
_TALLIES = """
SELECT language, sum(times * (event = 'shown')) AS shown, sum(times * (event = 'accepted')),
    sum(times * (event = 'partial')), sum(times * (event = 'typed')), sum(times * (event = 'rejected')),
    sum(chars * (event IN ('accepted', 'partial')))
FROM counts GROUP BY language ORDER BY shown DESC, language
"""
"""The columns are the fields of `Tally`."""
WRITE_EVERY_S = 5.0
_BUSY_S = 2.0
_MOST_PENDING = 10_000
"""Most events that are kept while they can't be written."""


class StatsError(EngineError):
    """The counts can't be read or written. The message is one sentence for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    language: str
    shown: int = 0
    accepted: int = 0
    """Accepted whole, at once or piece by piece."""
    partial: int = 0
    """Accepted in part."""
    typed: int = 0
    """Typed by hand."""
    rejected: int = 0
    accepted_chars: int = 0
    """Characters inserted by accepting, in whole or in part."""


def stats_path() -> Path:
    """The file of the counts; it may not exist."""
    return state_dir() / "stats.sqlite3"


class Stats:
    """Collects counts and writes them at intervals; several language servers may write at once."""

    def __init__(self, path: Callable[[], Path]) -> None:
        """`path()`: the file, like `stats_path`; called when there is something to write."""
        self._path = path
        self._lock = threading.Lock()
        self._pending: deque[tuple[float, str, str, str, int]] = deque(maxlen=_MOST_PENDING)
        """Time, day, language, event, characters."""

    def add(self, language: str, event: str, chars: int) -> None:
        with self._lock:
            self._pending.append((time.time(), date.today().isoformat(), language, event, chars))

    async def keep_writing(self, complain: Callable[[str], object], every_s: float = WRITE_EVERY_S) -> None:
        """Write collected counts at intervals, without end. Each error is reported once."""
        reported = set[str]()
        while True:
            await asyncio.sleep(every_s)
            try:
                await asyncio.to_thread(self.write)
            except EngineError as error:
                if str(error) not in reported:
                    reported.add(str(error))
                    complain(str(error))

    def write(self) -> None:
        """Write the counts since the last reset; what can't be written is kept for later. Raises EngineError."""
        with self._lock:
            pending = list(self._pending)
            self._pending.clear()
        if not pending:
            return
        try:
            _add(self._path(), pending)
        except EngineError:
            with self._lock:
                self._pending.extendleft(reversed(pending))
            raise


def _add(path: Path, pending: Sequence[tuple[float, str, str, str, int]]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S)) as database, database:
            database.execute(_SCHEMA)
            reset_at = _reset_at(path)
            database.executemany(_ADD, [counted for at, *counted in pending if at > reset_at])
    except (OSError, sqlite3.Error) as error:
        raise StatsError(_unusable(path, error)) from None


def tallies(path: Path) -> list[Tally]:
    """All counts by language, most shown first. Raises StatsError."""
    try:
        if not path.exists():
            return []
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S)) as database:
            rows = database.execute(_TALLIES).fetchall()
    except (OSError, sqlite3.Error) as error:
        raise StatsError(_unusable(path, error)) from None
    names = [field.name for field in fields(Tally)]
    return [Tally(**dict(zip(names, row, strict=True))) for row in rows]


def reset(path: Path) -> None:
    """Delete all counts, also those that running servers have not written yet. Raises StatsError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # First: a server with the old file open writes there, and one that opens the new file knows of the reset.
        with replacing(_reset_path(path)) as draft:
            draft.write_text(repr(time.time()))
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StatsError(_unusable(path, error)) from None


def _reset_path(path: Path) -> Path:
    return path.with_suffix(".reset")


def _reset_at(path: Path) -> float:
    try:
        return float(_reset_path(path).read_text())
    except (OSError, ValueError):
        return 0.0


def _unusable(path: Path, error: Exception) -> str:
    return (
        f"The counts in {path} can't be used ({error}): `dg-lsp stats --reset` deletes them, "
        "DG_LSP_STATE_DIR moves them."
    )
