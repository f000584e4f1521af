"""The wire between the language server and the engine: its version, packing, checks and frames.

A frame is four bytes of length, big-endian, then a msgpack map; what the maps mean: engine.ipc.messages. A message that
the engine can't read is answered by `Failed` (with the id, if one could be read) and changes nothing else.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, cast

import msgpack
from cattrs import Converter, transform_error

from engine.core.errors import BodyError, FrameError, MalformedMessage, VersionMismatch
from engine.ipc.messages import (
    Answer,
    Cancel,
    Challenge,
    ClientMessage,
    Done,
    Drafted,
    EngineMessage,
    Failed,
    Fill,
    Hello,
    Notice,
    Proof,
    Report,
    StatusQuery,
    Stop,
    Survey,
    Surveyed,
    Warm,
    Welcome,
)

VERSION = 4
"""Raised with every change of a message; both ends must have the same."""
OTHER_VERSION = "The engine that runs is of another version of dg-lsp."
"""What a client says of an engine that refuses it for its version; the engine's own words count from its end."""
MAX_FRAME_NBYTES = 16 * 1024 * 1024
_LENGTH = struct.Struct(">I")


def pack(message: ClientMessage | EngineMessage) -> bytes:
    """A message as a frame. Raises BodyError where it is too large or holds what can't be sent."""
    return frame({"type": _TAGS[type(message)], **_converter.unstructure(message)})


def unpack_from_client(body: bytes) -> ClientMessage:
    """A frame's body as a message of a client. Raises MalformedMessage, VersionMismatch."""
    message = _unpack(body, _CLIENT_TYPES)
    if isinstance(message, Fill):
        _check_request(message)
    if isinstance(message, Survey) and not 0 <= message.cursor <= len(message.text):
        raise MalformedMessage("Bad message 'survey': cursor must be in 0..length of text.", message.id)
    return cast(ClientMessage, message)


def unpack_from_engine(body: bytes) -> EngineMessage:
    """A frame's body as a message of the engine. Raises MalformedMessage, VersionMismatch."""
    return cast(EngineMessage, _unpack(body, _ENGINE_TYPES))


def _unpack(body: bytes, types: dict[str, type[Any]]) -> Any:
    try:
        fields = unframe(body)
    except BodyError as error:
        raise MalformedMessage(str(error)) from None
    number = fields.get("id")
    number = number if type(number) is int else None
    tag = fields.pop("type", None)
    if not isinstance(tag, str) or tag not in types:
        raise MalformedMessage(f"Unknown message type {_cut(repr(tag))}.", number)
    # A greeting of another version may hold anything else, so its version is read first.
    if tag in ("hello", "welcome") and type(fields.get("version")) is int and fields["version"] != VERSION:
        raise VersionMismatch(f"The other end speaks protocol version {fields['version']}, this one {VERSION}.")
    try:
        return _converter.structure(fields, types[tag])
    except Exception as error:  # noqa: BLE001 cattrs wraps what any hook raises in groups of its own
        raise MalformedMessage(f"Bad message {tag!r}: {_reasons(error)}.", number) from None


def _check_request(fill: Fill) -> None:
    """Ranges; the types hold already."""
    request = fill.request
    deadline = request.deadline_ms
    checks = {
        "n must be in 1..32": 1 <= request.n <= 32,
        "max_tokens must be in 1..4096": 1 <= request.max_tokens <= 4096,
        "width must be in 1..4096": request.width is None or 1 <= request.width <= 4096,
        "deadline_ms must be above 0 and finite": deadline is None or 0 < deadline < math.inf,
        "seed must be in 0..2^63-1": 0 <= request.seed < 2**63,
        "strength must be in (0, 1]": 0 < request.strength <= 1,
        "keep must hold spans of old": all(0 <= start <= end <= len(request.old) for start, end in request.keep),
    }
    broken = [rule for rule, holds in checks.items() if not holds]
    if broken:
        raise MalformedMessage(f"Bad message 'fill': {'; '.join(broken)}.", fill.id)


def _reasons(error: Exception) -> str:
    # The first few, cut short: a message may quote the value, and values may be megabytes.
    return "; ".join(_cut(reason) for reason in transform_error(error)[:3])


def _cut(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."


def _strict(kind: type[Any], accepted: tuple[type[Any], ...]) -> Any:
    def structure(value: Any, _: Any) -> Any:
        # type() instead of isinstance: a bool is an int for isinstance.
        if type(value) not in accepted:
            raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
        return kind(value)

    return structure


def strict_converter() -> Converter:
    """Structures exactly what the types say: no unknown key, no number for a text."""
    converter = Converter(forbid_extra_keys=True)
    for kind, accepted in ((str, (str,)), (bytes, (bytes,)), (int, (int,)), (bool, (bool,)), (float, (float, int))):
        converter.register_structure_hook(kind, _strict(kind, accepted))
    return converter


_converter = strict_converter()
_CLIENT_TYPES: dict[str, type[Any]] = {
    "hello": Hello,
    "proof": Proof,
    "fill": Fill,
    "survey": Survey,
    "cancel": Cancel,
    "warm": Warm,
    "status": StatusQuery,
    "stop": Stop,
}
_ENGINE_TYPES: dict[str, type[Any]] = {
    "challenge": Challenge,
    "welcome": Welcome,
    "drafted": Drafted,
    "answer": Answer,
    "surveyed": Surveyed,
    "done": Done,
    "failed": Failed,
    "notice": Notice,
    "report": Report,
}
_TAGS = {kind: tag for tag, kind in (*_CLIENT_TYPES.items(), *_ENGINE_TYPES.items())}


def frame(body: dict[str, Any]) -> bytes:
    """One map as it goes over the wire. Raises BodyError where it is too large or can't be written down."""
    try:
        packed = cast(bytes, msgpack.packb(body))
    except UnicodeEncodeError:
        raise BodyError("The text holds half a surrogate pair, which is no character; remove it.") from None
    except OverflowError:
        raise BodyError("A whole number in the message needs more than 64 bits.") from None
    if len(packed) > MAX_FRAME_NBYTES:
        raise BodyError(f"The message is {len(packed)} bytes long, {MAX_FRAME_NBYTES} are allowed; send less text.")
    return _LENGTH.pack(len(packed)) + packed


def unframe(body: bytes) -> dict[str, Any]:
    """The map in one frame's body. Raises BodyError."""
    try:
        value = msgpack.unpackb(body)
    except ValueError:
        raise BodyError("The message is not valid msgpack.") from None
    if not isinstance(value, dict):
        raise BodyError("The message is not a msgpack map.")
    return cast(dict[str, Any], value)


class FrameSplitter:
    """Cuts a stream of bytes into frame bodies, however the bytes were torn apart on the way."""

    def __init__(self) -> None:
        self._pending = bytearray()

    @property
    def mid_frame(self) -> bool:
        """Whether the bytes so far end inside a frame."""
        return bool(self._pending)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes; all of them are to be taken before more is fed.

        Raises FrameError where a frame announces more than is allowed, once the bodies before it are taken.
        """
        self._pending += data
        return self._bodies()

    def _bodies(self) -> Iterator[bytes]:
        while len(self._pending) >= _LENGTH.size:
            nbytes: int = _LENGTH.unpack_from(self._pending)[0]
            if nbytes > MAX_FRAME_NBYTES:
                raise FrameError(f"A frame announces {nbytes} bytes, {MAX_FRAME_NBYTES} are allowed.")
            end = _LENGTH.size + nbytes
            if len(self._pending) < end:
                return
            body = bytes(self._pending[_LENGTH.size : end])
            del self._pending[:end]
            yield body
