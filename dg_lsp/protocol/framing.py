"""Messages on a byte stream: framing that survives garbage, and a writer that never blocks the event loop."""

from __future__ import annotations

import contextlib
import logging
import queue
import re
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from asyncio import StreamReader

log = logging.getLogger(__name__)

MAX_MESSAGE_NBYTES = 64 * 1024 * 1024
MAX_UNSENT_NBYTES = 16 * 1024 * 1024
_MAX_LINE_NBYTES = 64 * 1024
_CHUNK_NBYTES = 1024 * 1024
# Not anchored at the line's start: a body shorter than announced leaves garbage before the next header.
_CONTENT_LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,18})[ \t]*\r?\n", re.IGNORECASE)
_CONTENT_TYPE = re.compile(rb"content-type:", re.IGNORECASE)


def messages(stream: BinaryIO) -> Iterator[bytes]:
    """The bodies of messages, until the stream ends or breaks.

    Invalid headers and oversized messages are skipped; an empty body is yielded for what was lost.
    """
    with contextlib.suppress(OSError, ValueError):
        while found := _next_length(stream):
            nbytes, lost = found
            if lost or nbytes > MAX_MESSAGE_NBYTES:
                yield b""
            if nbytes > MAX_MESSAGE_NBYTES:
                _skip(stream, nbytes)
                continue
            body = stream.read(nbytes)
            if len(body) < nbytes:
                return
            yield body


async def read_body(stream: StreamReader) -> bytes:
    """The next body of a trusted stream. Raises IncompleteReadError at its end, ConnectionError."""
    found = _CONTENT_LENGTH.search(await stream.readuntil(b"\r\n\r\n"))
    if found is None:
        raise ConnectionError("A header announces no length.")
    return await stream.readexactly(int(found[1]))


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _next_length(stream: BinaryIO) -> tuple[int, bool] | None:
    """The length in the next block of headers, and whether there was garbage before it; None at the stream's end."""
    announced: int | None = None
    lost = False
    while line := stream.readline(_MAX_LINE_NBYTES):
        found = _CONTENT_LENGTH.search(line)
        if found:
            announced = int(found[1])
            lost |= bool(line[: found.start()].strip())
        elif line.strip():
            lost |= not _CONTENT_TYPE.match(line)
        elif announced is not None:
            return announced, lost
    return None


def _skip(stream: BinaryIO, nbytes: int) -> None:
    while nbytes > 0 and (skipped := len(stream.read(min(nbytes, _CHUNK_NBYTES)))):
        nbytes -= skipped


class Outbox:
    """Writes to a stream in a separate thread, so that a client that does not read can't block the server.

    `on_broken` is called once, in that thread, when the stream breaks or too much is unsent.
    """

    def __init__(self, stream: BinaryIO, on_broken: Callable[[], None]) -> None:
        self._stream = stream
        self._on_broken = on_broken
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # Guards what both threads change.
        self._lock = threading.Lock()
        self._unsent_nbytes = 0
        self._broken = False
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue bytes; they are dropped once the stream is broken."""
        with self._lock:
            if self._broken:
                return
            self._unsent_nbytes += len(data)
            unsent_nbytes = self._unsent_nbytes
        if unsent_nbytes > MAX_UNSENT_NBYTES:
            self._break(f"The client left {unsent_nbytes} bytes unread; the session ends.")
        else:
            self._waiting.put(data)

    def close(self) -> None:
        """Write what is queued, for a second at most, and close the stream."""
        self._waiting.put(None)
        self._thread.join(timeout=1)

    def _run(self) -> None:
        try:
            while (data := self._waiting.get()) is not None:
                self._stream.write(data)
                self._stream.flush()
                with self._lock:
                    self._unsent_nbytes -= len(data)
        except OSError:
            self._break()
        with contextlib.suppress(OSError):
            self._stream.close()

    def _break(self, reason: str = "") -> None:
        with self._lock:
            if self._broken:
                return
            self._broken = True
        if reason:
            log.warning("%s", reason)
        self._on_broken()
