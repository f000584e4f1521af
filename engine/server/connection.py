"""One client of the engine: its frames in, its messages out, and the bounds on both."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Protocol

from engine.common.challenge import EngineSide
from engine.common.errors import BodyError, FrameError, MalformedMessage, ProtocolError, VersionMismatch
from engine.common.frames import FrameSplitter
from engine.common.messages import (
    Analyze,
    Cancel,
    ClientMessage,
    Done,
    Drafted,
    EngineMessage,
    EngineStatus,
    Failed,
    FailureCode,
    Fill,
    Hello,
    Proof,
    StatusQuery,
    StatusReply,
    Stop,
    Warm,
    Welcome,
)
from engine.common.protocol import pack, unpack_from_client
from engine.server.analyzer import Analyzer
from engine.server.scheduler import Job, Scheduler
from engine.server.settings import Bounds

_log = logging.getLogger(__name__)
_CHUNK_NBYTES = 256 * 1024


class Host(Protocol):
    """What a connection needs from the engine around it."""

    scheduler: Scheduler
    analyzer: Analyzer
    bounds: Bounds
    secret: str
    """What a client must prove to know; empty where the system tells who a client is."""

    def welcome(self) -> Welcome:
        """The end of a handshake."""
        ...

    def has_room(self) -> bool:
        """Whether one more client can be served."""
        ...

    def status(self) -> EngineStatus:
        """The engine's status."""
        ...

    def stop(self, reason: str) -> None:
        """End the engine soon."""
        ...


class _Refused(ProtocolError):
    """The client may not go on; it has been told why."""


class Connection:
    """Runs until the client goes or breaks the rules; its work ends with it."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: Host) -> None:
        self._number = number
        self._reader = reader
        self._writer = writer
        self._transport = writer.transport
        self._host = host
        self._splitter = FrameSplitter()
        self._loop = asyncio.get_running_loop()
        self._handshake_by = self._loop.time() + host.bounds.handshake_s
        self._proving: EngineSide | None = None
        self._strange_nbytes = 0
        self.name = ""
        self.package = ""
        self.ready = False

    async def run(self) -> None:
        """The handshake, then messages until the connection ends."""
        try:
            while data := await self._read():
                for body in self._splitter.feed(data):
                    message = self._unpacked(body)
                    if message is not None:
                        (self._obey if self.ready else self._handshake)(message)
                if not self.ready:
                    self._count_strange(len(data))
        except FrameError as error:
            self.send(Failed(id=None, code="protocol", message=str(error)))
        except TimeoutError:
            self.send(Failed(id=None, code="protocol", message="The rest of a message did not come in time."))
        except (OSError, _Refused) as error:
            _log.info("client %d: %s", self._number, error)
        finally:
            self._host.scheduler.drop(self._number)
            self._host.analyzer.drop(self._number)
            self.close()

    def send(self, message: EngineMessage) -> None:
        """Send, on the event loop's thread; a client that does not read is dropped, so that nothing piles up."""
        if self._transport.is_closing():
            return
        unsent = self._transport.get_write_buffer_size()
        if isinstance(message, Drafted) and unsent > self._host.bounds.unsent_draft_nbytes:
            return
        self._transport.write(_packed(message))
        if self._transport.get_write_buffer_size() > self._host.bounds.unsent_nbytes:
            _log.warning("client %d does not read and is dropped", self._number)
            self._transport.abort()

    def deliver(self, message: EngineMessage) -> None:
        """Send, from any thread."""
        # The loop closes first when the engine ends; nobody reads the reply then.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.send, message)

    def close(self) -> None:
        """Close the connection once what is written has gone out, within a short limit."""
        self._transport.close()
        self._loop.call_later(self._host.bounds.farewell_s, self._transport.abort)

    def drop(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _count_strange(self, nbytes: int) -> None:
        self._strange_nbytes += nbytes
        if self._strange_nbytes > self._host.bounds.handshake_nbytes:
            raise self._refuse("protocol", "The first message is too long.")

    async def _read(self) -> bytes:
        bounds = self._host.bounds
        frame_by = self._loop.time() + bounds.frame_s if self._splitter.mid_frame else None
        async with asyncio.timeout_at(frame_by if self.ready else self._handshake_by):
            return await self._reader.read(_CHUNK_NBYTES)

    def _unpacked(self, body: bytes) -> ClientMessage | None:
        """The message of a frame; None where it is none, which the client has been told."""
        try:
            return unpack_from_client(body)
        except MalformedMessage as error:
            self.send(Failed(id=error.id, code="protocol", message=str(error)))
            return None
        except VersionMismatch as error:
            raise self._refuse("version", str(error)) from None

    def _handshake(self, message: ClientMessage) -> None:
        if self._proving:
            if not (isinstance(message, Proof) and self._proving.accepts(message)):
                raise self._refuse("protocol", "The client does not know the secret in the engine's address file.")
        elif not isinstance(message, Hello):
            raise self._refuse("protocol", "The first message must be a hello.")
        else:
            self.name, self.package = message.client, message.package
            if self._host.secret:
                self._challenge(message)
                return
        if not self._host.has_room():
            raise self._refuse("busy", "The engine has too many clients; close some editors.")
        self.ready = True
        self.send(self._host.welcome())

    def _challenge(self, hello: Hello) -> None:
        try:
            self._proving = EngineSide(self._host.secret, hello.nonce)
        except MalformedMessage as error:
            raise self._refuse("protocol", str(error)) from None
        self.send(self._proving.challenge)

    def _obey(self, message: ClientMessage) -> None:
        match message:
            case Fill() | Warm():
                self._host.scheduler.submit(Job.of(self._number, message, self.deliver))
            case Analyze():
                self._host.analyzer.analyze(self._number, message, self.send)
            case Cancel():
                self._host.scheduler.cancel(self._number, message.id)
                self._host.analyzer.cancel(self._number, message.id)
            case StatusQuery():
                self.send(StatusReply(id=message.id, status=self._host.status()))
            case Stop():
                self.send(Done(id=message.id))
                self._host.stop(f"client {self._number} asked for it")
            case Hello() | Proof():
                self.send(Failed(id=None, code="protocol", message="The handshake is done already: send requests."))

    def _refuse(self, code: FailureCode, message: str) -> _Refused:
        self.send(Failed(id=None, code=code, message=message))
        return _Refused(message)


def _packed(message: EngineMessage) -> bytes:
    try:
        return pack(message)
    except BodyError as error:
        return pack(Failed(id=getattr(message, "id", None), code="internal", message=str(error)))
