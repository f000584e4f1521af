"""Session files: JSON lines, a header and then events with times.

    {"session": 1, "title": "Write a function"}
    {"at": 0, "do": "open", "path": "a.py", "language": "python", "text": "def f():\\n    ", "cursor": 13}
    {"at": 400, "do": "type", "text": "r"}
    {"at": 520, "do": "delete", "count": 1}
    {"at": 900, "do": "accept", "text": "return 1"}
    {"at": 1500, "do": "move", "cursor": 0}
    {"at": 1700, "do": "undo"}
    {"at": 2000, "do": "focus", "path": "b.py"}

Times are milliseconds since the start, cursors string offsets. Events belong to the document opened or focused last.
`accept` accepts a suggestion, or the part of it that is this text; where none fits, the text is typed, so that a
session has the same outcome with any model. `type` is one key, with what the editor adds to it, such as indent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, cast

import msgspec

from engine.common.errors import BadInput, shortened
from engine.common.files import read_regular
from engine.common.wire import Wire

T = TypeVar("T")
MOST_NBYTES = 256 << 20
"""Limit of a session file."""


class SessionError(BadInput):
    """A session can't be read, made or played. The message is one sentence for users."""


class _Timed(Wire, frozen=True, kw_only=True, tag=str.lower, tag_field="do"):
    at: float


class Open(_Timed, frozen=True, kw_only=True):
    """Open a document; the file need not exist."""

    path: str
    language: str
    text: str
    cursor: int = 0


class Focus(_Timed, frozen=True, kw_only=True):
    path: str


class Type(_Timed, frozen=True, kw_only=True):
    text: str


class Delete(_Timed, frozen=True, kw_only=True):
    count: int = 1


class Move(_Timed, frozen=True, kw_only=True):
    cursor: int


class Accept(_Timed, frozen=True, kw_only=True):
    text: str


class Undo(_Timed, frozen=True, kw_only=True):
    pass


Event = Open | Focus | Type | Delete | Move | Accept | Undo


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    session: Literal[1]
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    title: str
    events: tuple[Event, ...]


def read_session(path: Path) -> Session:
    """Read a session. Raises SessionError naming the line."""
    try:
        lines = read_regular(path, MOST_NBYTES).splitlines()
    except OSError as error:
        raise SessionError(f"The session {path} can't be read ({error.strerror or error}): check the path.") from None
    if not lines:
        raise SessionError(f"The session {path} is empty.")
    head = _read(path, 1, lines[0], _Head)
    events, opened = list[Event](), set[str]()
    for at, line in enumerate(lines[1:], 2):
        if line.strip():
            events.append(event := _read(path, at, line, cast(type[Event], Event)))
            if isinstance(event, Open):
                opened.add(event.path)
            elif isinstance(event, Focus) and event.path not in opened:
                raise SessionError(f"{path}:{at}: {shortened(event.path)} is not open yet: open it first.")
    if not events or not isinstance(events[0], Open):
        raise SessionError(f"{path}:2: a session begins by opening a document.")
    return Session(title=head.title or path.stem, events=tuple(events))


def write_session(session: Session, path: Path) -> None:
    """Write a session. Raises SessionError."""
    lines = (_Head(session=1, title=session.title), *session.events)
    try:
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    except OSError as error:
        raise SessionError(f"The session {path} can't be written ({error.strerror}).") from None


def _read(path: Path, number: int, line: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except (ValueError, RecursionError) as error:
        raise SessionError(f"{path}:{number}: not a line of a recorded session: {shortened(str(error))}.") from None
