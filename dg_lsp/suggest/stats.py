"""Counts of what became of suggestions, kept on this machine. Counts only: no text, no file names."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import cast

import platformdirs

from engine.core.errors import EngineError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS counts (
    day TEXT, language TEXT, event TEXT, times INTEGER NOT NULL, chars INTEGER NOT NULL,
    PRIMARY KEY (day, language, event)
)
"""
_ADD = """
INSERT INTO counts VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET times = times + excluded.times, chars = chars + excluded.chars
"""
_BUSY_S = 2.0


class StatsError(EngineError):
    """The counts can't be read or written. The message is one sentence for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How suggestions in one language were met."""

    language: str
    shown: int = 0
    accepted: int = 0
    """Taken whole, in one go or piece by piece."""
    partial: int = 0
    """Taken in part."""
    typed: int = 0
    """Typed by hand to the end."""
    rejected: int = 0
    accepted_chars: int = 0
    """Put into documents by accepting, in whole or in part."""


def stats_path() -> Path:
    """The file with the counts; it may not exist."""
    given = os.environ.get("DG_LSP_STATE_DIR")
    folder = Path(given) if given else Path(platformdirs.user_state_dir("dg-lsp", appauthor=False))
    return folder / "stats.sqlite3"


@dataclass(slots=True, kw_only=True)
class _Pending:
    """Collected between two resets and not written yet, by day, language and event."""

    epoch: bytes
    times: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    chars: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])

    def rows(self) -> list[tuple[str, str, str, int, int]]:
        return [(*key, count, self.chars[key]) for key, count in self.times.items()]


class Stats:
    """Collects counts and writes them now and then; several language servers may write at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._pending = _Pending(epoch=b"")

    def add(self, language: str, event: str, chars: int) -> None:
        key, epoch = (date.today().isoformat(), language, event), _epoch(self._path)
        with self._lock:
            if self._pending.epoch != epoch:
                self._pending = _Pending(epoch=epoch)
            self._pending.times[key] += 1
            self._pending.chars[key] += chars

    def write(self) -> None:
        """Write what was collected since the last reset; what can't be written is kept for later. Raises StatsError."""
        with self._lock:
            pending, self._pending = self._pending, _Pending(epoch=self._pending.epoch)
        if not pending.times:
            return
        try:
            _add(self._path, pending)
        except (OSError, sqlite3.Error) as error:
            with self._lock:
                if self._pending.epoch == pending.epoch:
                    self._pending.times += pending.times
                    self._pending.chars += pending.chars
            raise StatsError(_unusable(self._path, error)) from None


def tallies(path: Path) -> list[Tally]:
    """All counts by language, most shown first. Raises StatsError."""
    if not path.exists():
        return []
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S)) as database:
            rows = cast(
                list[tuple[str, str, int, int]],
                database.execute("SELECT language, event, sum(times), sum(chars) FROM counts GROUP BY 1, 2").fetchall(),
            )
    except (OSError, sqlite3.Error) as error:
        raise StatsError(_unusable(path, error)) from None
    times = {(language, event): count for language, event, count, _ in rows}
    chars = {(language, event): count for language, event, _, count in rows}
    found = [_tally(language, times, chars) for language in {language for language, *_ in rows}]
    return sorted(found, key=lambda tally: (-tally.shown, tally.language))


def reset(path: Path) -> None:
    """Forget all counts, also those that running servers have not written yet. Raises StatsError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # First: who has the old file open writes into the old file, and who opens a new one sees the new epoch.
        _epoch_path(path).write_bytes(uuid.uuid4().bytes)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StatsError(_unusable(path, error)) from None


def _add(path: Path, pending: _Pending) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S)) as database, database:
        database.execute(_SCHEMA)
        if _epoch(path) == pending.epoch:
            database.executemany(_ADD, pending.rows())


def _epoch_path(path: Path) -> Path:
    return path.with_suffix(".epoch")


def _epoch(path: Path) -> bytes:
    """What the last reset left; differs from reset to reset."""
    try:
        return _epoch_path(path).read_bytes()
    except OSError:
        return b""


def _tally(language: str, times: dict[tuple[str, str], int], chars: dict[tuple[str, str], int]) -> Tally:
    met = {event: times.get((language, event), 0) for event in ("shown", "accepted", "partial", "typed", "rejected")}
    accepted_chars = chars.get((language, "accepted"), 0) + chars.get((language, "partial"), 0)
    return Tally(language=language, accepted_chars=accepted_chars, **met)


def _unusable(path: Path, error: Exception) -> str:
    return (
        f"The counts in {path} can't be used ({error}); `dg-lsp stats --reset` starts them anew, "
        "DG_LSP_STATE_DIR moves them."
    )
