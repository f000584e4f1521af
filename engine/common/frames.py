"""The framing between processes: four bytes of length, big-endian, then a msgpack map."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Literal, TypeVar, cast

import msgpack
import msgspec

from engine.common.errors import BodyError, FrameError, MalformedMessage, shortened

T = TypeVar("T")
MAX_FRAME_NBYTES = 16 * 1024 * 1024
_LENGTH = struct.Struct(">I")
HEAD_NBYTES = _LENGTH.size
_BYTES = (bytes,)


def plain(value: Any) -> Any:
    """A value in msgpack's types."""
    return msgspec.to_builtins(value, builtin_types=_BYTES)


def structured(fields: object, kind: type[T]) -> T:
    """A value converted to a type, strictly: no number for a text. Raises ValueError naming the field."""
    try:
        return msgspec.convert(fields, kind, builtin_types=_BYTES)
    except msgspec.ValidationError as error:
        raise ValueError(shortened(str(error))) from None


def frame(
    body: dict[str, Any],
    most_nbytes: int = MAX_FRAME_NBYTES,
    unicode_errors: Literal["strict", "surrogatepass"] = "strict",
) -> bytes:
    """One frame. Raises BodyError where the map is too large or can't be packed."""
    try:
        packed = cast(bytes, msgpack.packb(body, unicode_errors=unicode_errors))
    except UnicodeEncodeError:
        raise BodyError("The text holds half a surrogate pair, which is no character; remove it.") from None
    except OverflowError:
        raise BodyError("A whole number in the message needs more than 64 bits.") from None
    if len(packed) > most_nbytes:
        raise BodyError(f"The message is {len(packed)} bytes long, {most_nbytes} are allowed; send less text.")
    return _LENGTH.pack(len(packed)) + packed


def unframe(body: bytes, unicode_errors: Literal["strict", "surrogatepass"] = "strict") -> dict[str, Any]:
    """The map in a frame's body. Raises MalformedMessage."""
    try:
        value = msgpack.unpackb(body, unicode_errors=unicode_errors)
    except ValueError:
        raise MalformedMessage("The message is not valid msgpack.") from None
    if not isinstance(value, dict):
        raise MalformedMessage("The message is not a msgpack map.")
    return cast(dict[str, Any], value)


def announced(head: bytes | bytearray, most_nbytes: int = MAX_FRAME_NBYTES) -> int:
    """The length of the body after a frame's first HEAD_NBYTES. Raises FrameError where it is over the limit."""
    nbytes: int = _LENGTH.unpack_from(head)[0]
    if nbytes > most_nbytes:
        raise FrameError(f"A frame announces {nbytes} bytes, {most_nbytes} are allowed.")
    return nbytes


class FrameSplitter:
    """Splits a stream of bytes into frame bodies."""

    def __init__(self) -> None:
        self._pending = bytearray()

    @property
    def mid_frame(self) -> bool:
        """Whether the bytes so far end within a frame."""
        return bool(self._pending)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes; consume all before the next call. Raises FrameError, after the valid
        bodies, where a frame's length is over the limit.
        """
        self._pending += data
        return self._bodies()

    def _bodies(self) -> Iterator[bytes]:
        while len(self._pending) >= HEAD_NBYTES:
            end = HEAD_NBYTES + announced(self._pending)
            if len(self._pending) < end:
                return
            body = bytes(self._pending[HEAD_NBYTES:end])
            del self._pending[:end]
            yield body
