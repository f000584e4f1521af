"""One connection to the engine: handshake, one reader, answers by id. A lost connection is not reopened; see `client`.

A process that was stopped or hangs keeps its socket open. So the rule is: an engine answers, or makes progress, or is
replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dg_lsp.backend.timeouts import Timeouts
from engine.common import messages
from engine.common.address import Address, TcpAddress, UnixAddress
from engine.common.client import EngineFailure, Handshake, connected, unmet
from engine.common.errors import BodyError, EngineError, ProtocolError
from engine.common.frames import HEAD_NBYTES, announced
from engine.common.peercred import Peer, is_own, is_stopped, kill, listener, peer_of, work_done
from engine.common.protocol import pack, unpack_from_engine
from engine.common.request import Draft
from engine.common.version import __version__

T = TypeVar("T")
_MAX_UNSENT_NBYTES = 64 * 1024 * 1024
_AGAIN_S = 0.1
"""Pause between attempts to connect to an engine whose queue of connections is full."""
_SIGN_OF_LIFE = messages.StatusQuery(id=0)
"""Callers count their requests from 1."""

Request = messages.Fill | messages.Analyze | messages.Warm | messages.StatusQuery
EngineReply = messages.FillReply | messages.AnalyzeReply | messages.Done | messages.StatusReply


class EngineSilent(EngineError):
    """The engine was silent for too long. `peer`: its process, if known."""

    def __init__(self, peer: Peer | None) -> None:
        super().__init__("The engine accepts connections but does not answer.")
        self.peer = peer


class EngineConnection:
    """An open connection, made by `open_connection`. It kills an engine that stays silent while a request waits."""

    def __init__(
        self,
        address: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        timeouts: Timeouts,
        on_notice: Callable[[messages.Notice], None],
        on_lost: Callable[[EngineConnection], None],
    ) -> None:
        self._address = address
        self._reader = reader
        self._writer = writer
        self._timeouts = timeouts
        self._on_notice = on_notice
        self._on_lost = on_lost
        self._waiting: dict[int, tuple[asyncio.Future[EngineReply], Callable[[Draft], None] | None]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closed = False
        self._heard_s = time.monotonic()
        self._unix_peer = peer_of(writer.get_extra_info("socket"))

    async def handshake(self, client: str) -> messages.Welcome:
        """Shake hands. Raises EngineFailure, ProtocolError, OSError, EOFError."""
        if not isinstance(self._address, TcpAddress) and not is_own(self._unix_peer):
            raise EngineFailure("unavailable", "The engine's socket is served by another user; set DG_LSP_RUNTIME_DIR.")
        handshake = Handshake(self._address, client, __version__)
        said = handshake.hello
        while not isinstance(said, messages.Welcome):
            self._writer.write(self._packed(said))
            said = handshake.answer(await self._next())
        return said

    def listen(self) -> None:
        """Start to read: from now on requests are answered, and `on_notice` and `on_lost` are called."""
        self._listening = asyncio.create_task(self._listen(), name="engine reader")

    async def request(self, message: Request, on_draft: Callable[[Draft], None] | None = None) -> EngineReply:
        """Send a request and wait for the reply; cancelling the task cancels the work. Raises EngineFailure."""
        reply = asyncio.get_running_loop().create_future()
        self._writer.write(self._packed(message))
        self._waiting[message.id] = (reply, on_draft)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="engine heartbeat")
        try:
            return await reply
        finally:
            del self._waiting[message.id]
            # Awaiting cancels the reply along with the caller. A connection that takes no more is lost, and its work.
            if reply.cancelled():
                with contextlib.suppress(EngineFailure):
                    self._writer.write(self._packed(messages.Cancel(id=message.id)))

    def close(self) -> None:
        """Close at once; waiting requests fail with "unavailable"."""
        if self._closed:
            return
        self._closed = True
        for task in self.tasks():
            task.cancel()
        self._writer.transport.abort()
        for reply, _ in self._waiting.values():
            if not reply.done():
                reply.set_exception(EngineFailure("unavailable", "The engine ended before it answered: try again."))
        self._on_lost(self)

    def tasks(self) -> list[asyncio.Task[None]]:
        """The background tasks."""
        return [task for task in (self._listening, self._watching) if task]

    def peer(self) -> Peer | None:
        """The engine's process, if the system knows it; finding it over TCP takes a while."""
        address = self._address
        return listener(address.pid, address.port) if isinstance(address, TcpAddress) else self._unix_peer

    def _packed(self, message: messages.ClientMessage) -> bytes:
        if self._closed or self._writer.transport.get_write_buffer_size() > _MAX_UNSENT_NBYTES:
            raise EngineFailure("unavailable", "The engine does not take messages; it is being replaced.")
        try:
            return pack(message)
        except BodyError as error:
            raise EngineFailure("bad_request", str(error)) from None

    async def _next(self) -> messages.EngineMessage:
        head = await self._reader.readexactly(HEAD_NBYTES)
        body = await self._reader.readexactly(announced(head))
        self._heard_s = time.monotonic()
        return unpack_from_engine(body)

    async def _listen(self) -> None:
        try:
            while True:
                self._take(await self._next())
        except (OSError, EOFError, ProtocolError):
            # Whatever broke, nothing that follows can be trusted; the client opens a fresh connection.
            self.close()

    def _take(self, message: messages.EngineMessage) -> None:
        if isinstance(message, messages.Notice):
            self._on_notice(message)
            return
        if isinstance(message, messages.Challenge | messages.Welcome) or message.id not in self._waiting:
            return
        reply, on_draft = self._waiting[message.id]
        if reply.done():
            return
        if isinstance(message, messages.Drafted):
            if on_draft:
                on_draft(message.draft)
        elif isinstance(message, messages.Failed):
            reply.set_exception(EngineFailure(message.code, message.message))
        else:
            reply.set_result(message)

    async def _watch(self) -> None:
        """While a request waits, query a silent engine for a sign of life, and kill it if none comes.

        Its event loop answers whatever the model is doing.
        """
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(self._timeouts.beat_s)
            try:
                if self._heard_s < began_s:
                    await answer_or_silence(self.request(_SIGN_OF_LIFE), self.peer, self._timeouts)
            except EngineSilent as silent:
                # Only the system's word about who that is counts.
                kill(silent.peer)
                self.close()
                return
            except EngineFailure:
                return  # Lost or refused in the meantime: then it isn't silent.
            if not self._waiting:
                return


async def open_connection(
    address: Address,
    client: str,
    timeouts: Timeouts,
    on_notice: Callable[[messages.Notice], None],
    on_lost: Callable[[EngineConnection], None],
) -> tuple[EngineConnection, messages.Welcome]:
    """Connect and shake hands.

    Raises OSError, EOFError, EngineFailure, EngineSilent, and ProtocolError where it is no engine.
    """
    connection: EngineConnection | None = None
    refuses: Peer | None = None

    async def met() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        nonlocal refuses
        if not isinstance(address, UnixAddress):
            return await asyncio.open_connection("127.0.0.1", address.port, family=socket.AF_INET)
        while True:
            try:
                return await asyncio.open_unix_connection(sock=connected(address))
            except BlockingIOError:
                refuses = refuses or await asyncio.to_thread(unmet, address)
                await asyncio.sleep(_AGAIN_S)

    def peer() -> Peer | None:
        if connection:
            return connection.peer()
        return unmet(address) if isinstance(address, TcpAddress) else refuses

    async def connect() -> tuple[EngineConnection, messages.Welcome]:
        nonlocal connection
        reader, writer = await met()
        connection = EngineConnection(address, reader, writer, timeouts, on_notice, on_lost)
        return connection, await connection.handshake(client)

    try:
        return await answer_or_silence(connect(), peer, timeouts)
    except BaseException:  # no connection may stay open, whoever gives up
        if connection is not None:
            connection.close()
        raise


async def started(starter: subprocess.Popen[bytes]) -> None:
    """Wait until the starter has an engine running. Raises EngineFailure with the starter's own sentence."""
    try:
        _, errors = await asyncio.to_thread(starter.communicate)
    finally:
        with contextlib.suppress(ProcessLookupError):
            starter.kill()
    if starter.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        said = lines[-1].removeprefix("dg-lsp: ") if lines else "The engine did not start; run `dg-lsp doctor`."
        raise EngineFailure("unavailable", said)


async def answer_or_silence(answer: Awaitable[T], peer: Callable[[], Peer | None], timeouts: Timeouts) -> T:
    """The result of `answer`. Raises what it raises, and EngineSilent if `peer` neither answers nor works."""
    task = asyncio.ensure_future(answer)
    began_s = moved_s = time.monotonic()
    done = work_done(peer())
    try:
        while not (await asyncio.wait({task}, timeout=min(timeouts.look_s, timeouts.idle_s / 4)))[0]:
            who = peer()
            now_s, before, done = time.monotonic(), done, work_done(who)
            if done != before:
                moved_s = now_s
            still_s = timeouts.stopped_s if is_stopped(who) else timeouts.idle_s
            if now_s - moved_s >= still_s or now_s - began_s >= timeouts.busy_s:
                raise EngineSilent(who)
        return task.result()
    finally:
        task.cancel()
