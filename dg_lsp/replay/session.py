"""A session file: JSON lines, a head and then what happened, with times.

    {"session": 1, "title": "Write a function"}
    {"at": 0, "do": "open", "path": "a.py", "language": "python", "text": "def f():\\n    ", "cursor": 13}
    {"at": 400, "do": "type", "text": "r"}
    {"at": 520, "do": "delete", "count": 1}
    {"at": 900, "do": "accept", "text": "return 1"}
    {"at": 1500, "do": "move", "cursor": 0}
    {"at": 1700, "do": "undo"}
    {"at": 2000, "do": "focus", "path": "b.py"}

Times are milliseconds since the start, cursors string offsets. Events belong to the document opened or focused last.
`accept` takes a suggestion, or the part of it that is this text, and types the text where nothing fitting is shown, so
that a session goes the same way with any model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from engine.core.errors import BadInput
from engine.core.wire import Wire
from engine.ipc.frames import plain, structured

VERSION = 1


class SessionError(BadInput):
    """A session can't be read or made. The message is one sentence for users."""


class _Timed(Wire, frozen=True, kw_only=True, tag=str.lower, tag_field="do"):
    at: float


class Open(_Timed, frozen=True, kw_only=True):
    """A document is opened; a file of that path need not exist."""

    path: str
    language: str
    text: str
    cursor: int = 0


class Focus(_Timed, frozen=True, kw_only=True):
    """The person turns to a document that is open already."""

    path: str


class Type(_Timed, frozen=True, kw_only=True):
    """A key, or what one key brings with it, such as indentation."""

    text: str


class Delete(_Timed, frozen=True, kw_only=True):
    """Characters before the cursor go."""

    count: int = 1


class Move(_Timed, frozen=True, kw_only=True):
    """The cursor jumps."""

    cursor: int


class Accept(_Timed, frozen=True, kw_only=True):
    """A suggestion of this text is taken, or the text is typed."""

    text: str


class Undo(_Timed, frozen=True, kw_only=True):
    """The last change is taken back."""


Event = Open | Focus | Type | Delete | Move | Accept | Undo


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a person did."""

    title: str
    events: tuple[Event, ...]


def read_session(path: Path) -> Session:
    """Read a session. Raises SessionError naming the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SessionError(f"The session {path} can't be read ({error}).") from None
    if not lines:
        raise SessionError(f"The session {path} is empty.")
    head = _object(path, 1, lines[0])
    if head.get("session") != VERSION:
        raise SessionError(f'{path}:1: the first line of a session is {{"session": {VERSION}, "title": ...}}.')
    events = tuple(_event(path, at, line) for at, line in enumerate(lines[1:], 2) if line.strip())
    if not events or not isinstance(events[0], Open):
        raise SessionError(f"{path}:2: a session begins by opening a document.")
    return Session(title=str(head.get("title", path.stem)), events=events)


def write_session(session: Session, path: Path) -> None:
    """Write a session. Raises SessionError."""
    lines: Iterable[dict[str, Any]] = ({"session": VERSION, "title": session.title}, *map(plain, session.events))
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SessionError(f"The session {path} can't be written ({error.strerror}).") from None


def _event(path: Path, number: int, line: str) -> Event:
    try:
        return cast(Event, structured(_object(path, number, line), cast(Any, Event)))
    except ValueError as error:
        raise SessionError(f"{path}:{number}: {error}.") from None


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict):
        raise SessionError(f"{path}:{number}: not a JSON object.")
    return held
