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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from cattrs import Converter, transform_error

VERSION = 1


class SessionError(Exception):
    """A session can't be read or made. The message is one sentence for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A document is opened; a file of that path need not exist."""

    at: float
    path: str
    language: str
    text: str
    cursor: int = 0
    do: Literal["open"] = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """The person turns to a document that is open already."""

    at: float
    path: str
    do: Literal["focus"] = "focus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """A key, or what one key brings with it, such as indentation."""

    at: float
    text: str
    do: Literal["type"] = "type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Characters before the cursor go."""

    at: float
    count: int = 1
    do: Literal["delete"] = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The cursor jumps."""

    at: float
    cursor: int
    do: Literal["move"] = "move"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """A suggestion of this text is taken, or the text is typed."""

    at: float
    text: str
    do: Literal["accept"] = "accept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """The last change is taken back."""

    at: float
    do: Literal["undo"] = "undo"


Event = Open | Focus | Type | Delete | Move | Accept | Undo
_KINDS: dict[str, type[Event]] = {
    "open": Open,
    "focus": Focus,
    "type": Type,
    "delete": Delete,
    "move": Move,
    "accept": Accept,
    "undo": Undo,
}


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
    lines: Iterable[dict[str, Any]] = ({"session": VERSION, "title": session.title}, *map(asdict, session.events))
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SessionError(f"The session {path} can't be written ({error.strerror}).") from None


def _event(path: Path, number: int, line: str) -> Event:
    held = _object(path, number, line)
    kind = _KINDS.get(str(held.get("do")))
    if kind is None:
        raise SessionError(f'{path}:{number}: "do" must be one of {", ".join(_KINDS)}.')
    try:
        return _converter.structure(held, kind)
    except Exception as error:  # noqa: BLE001 cattrs raises groups of whatever went wrong
        raise SessionError(f"{path}:{number}: {'; '.join(transform_error(error))}.") from None


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict):
        raise SessionError(f"{path}:{number}: not a JSON object.")
    return held


_converter = Converter(forbid_extra_keys=True)
