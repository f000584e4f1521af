"""Frames: four bytes of length, big-endian, then a msgpack map. Nothing here knows what the maps mean."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, cast

import msgpack

MAX_FRAME_NBYTES = 16 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """A peer broke the framing, so nothing that follows on its connection can be trusted."""


class BodyError(Exception):
    """One frame's body is no msgpack map; the frames behind it are not affected."""


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
