"""Messages between the language server and the engine as frames; what they mean: engine.common.messages.

A message that the engine can't read is answered by `Failed` (with the id, if one could be read) and changes nothing
else.
"""

from __future__ import annotations

from typing import Any, cast, get_args

from engine.common.errors import MalformedMessage, VersionMismatch
from engine.common.frames import frame, plain, structured, unframe
from engine.common.messages import ClientMessage, EngineMessage

VERSION = 14
"""Increased with every change of a message; both ends must have the same."""
OTHER_VERSION = "The engine that runs is of another version of dg-lsp."
"""A client's message for an engine that refuses its version."""
_CLASSES: dict[tuple[Any, str], Any] = {
    (kind, each.__struct_config__.tag): each for kind in (ClientMessage, EngineMessage) for each in get_args(kind)
}


def pack(message: ClientMessage | EngineMessage) -> bytes:
    """A message as a frame. Raises BodyError where it is too large or holds what can't be sent."""
    return frame(plain(message))


def unpack_from_client(body: bytes) -> ClientMessage:
    """A frame's body as a message of a client. Raises MalformedMessage, VersionMismatch."""
    return cast(ClientMessage, _unpack(body, ClientMessage))


def unpack_from_engine(body: bytes) -> EngineMessage:
    """A frame's body as a message of the engine. Raises MalformedMessage, VersionMismatch."""
    return cast(EngineMessage, _unpack(body, EngineMessage))


def _unpack(body: bytes, kind: Any) -> Any:
    fields = unframe(body)
    tag, version, number = fields.get("type"), fields.get("version"), fields.get("id")
    # A hello of another version may hold anything else, so its version is read first.
    if tag in ("hello", "welcome") and type(version) is int and version != VERSION:
        raise VersionMismatch(f"The other end speaks protocol version {version}, this one {VERSION}.")
    try:
        # A class's checks are made ready once, a union's at every call.
        return structured(fields, _CLASSES.get((kind, tag), kind) if isinstance(tag, str) else kind)
    except ValueError as error:
        named = f"message {tag[:40]!r}" if isinstance(tag, str) else "message"
        raise MalformedMessage(f"Bad {named}: {error}.", number if type(number) is int else None) from None
