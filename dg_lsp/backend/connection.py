"""One connection to the engine: greeting, one reader, answers by id. Once lost it stays lost; see `engine_client`."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from dg_lsp.backend.heartbeat import EngineSilent, Silence, answer_or_silence
from engine.core.errors import BodyError, MalformedMessage, ProtocolError, VersionMismatch
from engine.core.request import Draft
from engine.core.version import __version__
from engine.ipc.address import Address, TcpAddress, UnixAddress
from engine.ipc.challenge import ClientSide, Impostor
from engine.ipc.frames import FrameSplitter
from engine.ipc.messages import (
    AnalyzeReply,
    Challenge,
    ClientMessage,
    Done,
    Drafted,
    EngineMessage,
    Failed,
    FailureCode,
    FillReply,
    Hello,
    Notice,
    StatusQuery,
    StatusReply,
    Welcome,
)
from engine.ipc.peercred import Peer, is_own, kill, listener, peer_of
from engine.ipc.protocol import OTHER_VERSION, VERSION, pack, unpack_from_engine

_CHUNK_NBYTES = 256 * 1024
_MAX_UNSENT_NBYTES = 64 * 1024 * 1024

Reply = FillReply | AnalyzeReply | Done | StatusReply


class EngineFailure(Exception):
    """The engine did not do what was asked. The message is one sentence for users.

    `code` is the engine's own, or "unavailable" (no engine can be reached or started) or "timeout".
    """

    def __init__(self, code: FailureCode | Literal["unavailable", "timeout"], message: str) -> None:
        super().__init__(message)
        self.code = code


class EngineWedged(Exception):
    """An engine accepts connections and says nothing. `peer` is the process that holds the socket, where known."""

    def __init__(self, peer: Peer | None) -> None:
        super().__init__("The engine accepts connections but does not answer.")
        self.peer = peer


@dataclass(slots=True, kw_only=True)
class Waiting:
    """Somebody who waits for the reply to a request. `reply`: cancelling it is giving up."""

    id: int
    reply: asyncio.Future[Reply] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    on_draft: Callable[[Draft], None] | None = None


class EngineConnection:
    """An open, greeted connection. Made by `open_connection`."""

    def __init__(
        self,
        address: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_notice: Callable[[Notice], None],
        on_lost: Callable[[EngineConnection], None],
    ) -> None:
        self._address = address
        self._reader = reader
        self._writer = writer
        self._on_notice = on_notice
        self._on_lost = on_lost
        self._splitter = FrameSplitter()
        self._bodies: Iterator[bytes] = iter(())
        self._waiting: dict[int, Waiting] = {}
        self._ids = itertools.count(1)
        self._read: asyncio.Task[None] | None = None
        self.closed = False
        self.heard_s = time.monotonic()
        """When the engine last said anything, monotonic seconds."""
        self._unix_peer = peer_of(writer.get_extra_info("socket"))

    async def greet(self, client: str) -> Welcome:
        """Say hello, over TCP prove and have proven, read the welcome, start listening.

        Raises EngineFailure, ConnectionError, ProtocolError.
        """
        address = self._address
        proving = ClientSide(address.secret) if isinstance(address, TcpAddress) else None
        self.send(Hello(version=VERSION, client=client, package=__version__, nonce=proving.nonce if proving else b""))
        welcome = await self._next()
        if proving and isinstance(welcome, Challenge):
            self.send(proving.answer(welcome))
            welcome = await self._next()
        elif proving and not isinstance(welcome, Failed):
            raise Impostor("What listens at the engine's port proves nothing.")
        if isinstance(welcome, Failed):
            if welcome.code == "version":
                raise VersionMismatch(OTHER_VERSION)
            raise EngineFailure(welcome.code, welcome.message)
        if not isinstance(welcome, Welcome):
            raise MalformedMessage("The engine's first message is no welcome.")
        self._read = asyncio.create_task(self._listen(), name="engine reader")
        return welcome

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._waiting)

    def waiting(self, on_draft: Callable[[Draft], None] | None = None) -> Waiting:
        """For the next request; its id is one that no other request on this connection has."""
        return Waiting(id=next(self._ids), on_draft=on_draft)

    def send(self, message: ClientMessage, waiting: Waiting | None = None) -> None:
        """Queue a message, and expect its reply where somebody waits. Raises EngineFailure where it can't be sent."""
        if self.closed or self._writer.transport.get_write_buffer_size() > _MAX_UNSENT_NBYTES:
            raise EngineFailure("unavailable", "The engine does not take messages; it is being replaced.")
        try:
            self._writer.write(pack(message))
        except BodyError as error:
            raise EngineFailure("bad_request", str(error)) from None
        if waiting:
            self._waiting[waiting.id] = waiting
            waiting.reply.add_done_callback(lambda _: self._waiting.pop(waiting.id, None))

    def close(self) -> None:
        """Close at once; whatever is waited for fails as "unavailable"."""
        if self.closed:
            return
        self.closed = True
        if self._read:
            self._read.cancel()
        self._writer.transport.abort()
        for waiting in list(self._waiting.values()):
            if not waiting.reply.done():
                waiting.reply.set_exception(EngineFailure("unavailable", "The engine went away."))
        self._on_lost(self)

    def kill_peer(self) -> None:
        """End the process at the other end. Only the system's word about who that is counts."""
        kill(self.peer)

    @property
    def peer(self) -> Peer | None:
        """The process at the other end, where it is known; over TCP to find out takes a while."""
        address = self._address
        return listener(address.pid, address.port) if isinstance(address, TcpAddress) else self._unix_peer

    @property
    def is_own(self) -> bool:
        """Whether the other end runs as this user; over TCP the challenge sees to that."""
        return isinstance(self._address, TcpAddress) or is_own(self._unix_peer)

    async def _receive(self) -> bytes:
        data = await self._reader.read(_CHUNK_NBYTES)
        if not data:
            raise ConnectionResetError("The engine closed the connection.")
        self.heard_s = time.monotonic()
        return data

    async def _next(self) -> EngineMessage:
        while (body := next(self._bodies, None)) is None:
            self._bodies = self._splitter.feed(await self._receive())
        return unpack_from_engine(body)

    async def _listen(self) -> None:
        try:
            while True:
                self._take(await self._next())
        except (OSError, ProtocolError):
            # Whatever broke, nothing that follows can be trusted; the client opens a fresh connection.
            self.close()

    def _take(self, message: EngineMessage) -> None:
        if isinstance(message, Notice):
            self._on_notice(message)
            return
        if isinstance(message, Challenge | Welcome) or message.id is None:
            return
        waiting = self._waiting.get(message.id)
        if waiting is None or waiting.reply.done():
            return
        if isinstance(message, Drafted):
            if waiting.on_draft:
                waiting.on_draft(message.draft)
        elif isinstance(message, Failed):
            waiting.reply.set_exception(EngineFailure(message.code, message.message))
        else:
            waiting.reply.set_result(message)


async def open_connection(
    address: Address,
    client: str,
    silence: Silence,
    on_notice: Callable[[Notice], None],
    on_lost: Callable[[EngineConnection], None],
) -> tuple[EngineConnection, Welcome]:
    """Connect and greet.

    Raises OSError, EngineFailure, EngineWedged, and ProtocolError where it is no engine.
    """
    connection: EngineConnection | None = None

    async def greet() -> tuple[EngineConnection, Welcome]:
        nonlocal connection
        reader, writer = await _open(address)
        connection = EngineConnection(address, reader, writer, on_notice, on_lost)
        _check_owner(connection)
        return connection, await connection.greet(client)

    try:
        return await answer_or_silence(greet(), lambda: connection and connection.peer, silence)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, EngineSilent):
            raise EngineWedged(connection and connection.peer) from None
        if isinstance(error, VersionMismatch):
            raise EngineFailure("version", f"{error} Run `dg-lsp engine restart`.") from None
        raise


async def watch(connection: EngineConnection, beat_s: float, silence: Silence) -> bool:
    """Follow a connection for as long as somebody waits for answers; False where the engine is silent.

    An engine that said nothing for `beat_s` is asked for a sign of life, which its event loop gives whatever the model
    is at. Costs nothing while nobody waits.
    """
    while True:
        began_s = time.monotonic()
        await asyncio.sleep(beat_s)
        if connection.closed:
            return True
        if connection.heard_s < began_s:
            waiting = connection.waiting()
            try:
                connection.send(StatusQuery(id=waiting.id), waiting)
                await answer_or_silence(waiting.reply, lambda: connection.peer, silence)
            except EngineSilent:
                return False
            except EngineFailure:
                return True  # Lost or refused in the meantime: then it isn't silent.
        elif not connection.is_awaited:
            return True


async def _open(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(address, UnixAddress):
        return await asyncio.open_unix_connection(address.path)
    return await asyncio.open_connection("127.0.0.1", address.port, family=socket.AF_INET)


def _check_owner(connection: EngineConnection) -> None:
    if not connection.is_own:
        raise EngineFailure("unavailable", "The engine's socket is served by another user; set DG_LSP_RUNTIME_DIR.")
