"""The handshake with the engine, and a blocking client for commands: one request, one reply, every wait limited."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Generator, Iterator
from typing import Literal

from engine.common.address import Address, TcpAddress, UnixAddress, find_engine
from engine.common.challenge import ClientSide, Impostor
from engine.common.errors import EngineError, MalformedMessage, ProtocolError, VersionMismatch
from engine.common.frames import FrameSplitter
from engine.common.messages import (
    Challenge,
    ClientMessage,
    Drafted,
    EngineMessage,
    Failed,
    FailureCode,
    Hello,
    Notice,
    Welcome,
)
from engine.common.peercred import Peer, holder, is_own, is_stopped, listener, peer_of
from engine.common.protocol import OTHER_VERSION, VERSION, pack, unpack_from_engine
from engine.common.request import Draft
from engine.common.runtime_paths import lock_path

OnDraft = Callable[[Draft], None]
_CHUNK_NBYTES = 64 * 1024
_HANDSHAKE_S = 30.0
"""Longest wait: an engine's imports at its start may block all of it."""
_LOOK_S = 0.5
"""Silence after which the client checks whether the engine is stopped."""
_HANGS = "The engine does not answer: `dg-lsp engine restart` replaces it."


class NoAnswer(EngineError):
    """Something listens at the engine's address but does not answer. `peer`: its process, if known."""

    def __init__(self, message: str, peer: Peer | None = None) -> None:
        super().__init__(message)
        self.peer = peer


class Broken(NoAnswer):
    """The connection broke within a message; another engine may answer."""


class EngineFailure(EngineError):
    """The engine did not fulfil a request. The message is one sentence for users. `code`: the engine's, or
    "unavailable" (no engine can be reached or started), or "timeout".
    """

    def __init__(self, code: FailureCode | Literal["unavailable", "timeout"], message: str) -> None:
        super().__init__(message)
        self.code = code


class Exchange:
    """A connection after the handshake."""

    def __init__(self, sock: socket.socket, address: Address, timeout_s: float) -> None:
        """Raises as `ask` does."""
        self._sock = sock
        self._timeout_s = timeout_s
        self._peer = _peer(sock, address)
        if not is_own(self._peer):
            raise EngineError("The engine's socket is served by another user; set DG_LSP_RUNTIME_DIR.")
        self._messages = self._received(min(timeout_s, _HANDSHAKE_S))
        with _no_answer(self._peer):
            self.welcome = self._handshake(address)
        self._messages = self._received(timeout_s)

    @property
    def stays(self) -> bool:
        """Whether the engine is not about to end."""
        return self.welcome.state.name != "stopping"

    def __call__(self, message: ClientMessage, on_draft: OnDraft | None = None, /) -> EngineMessage:
        """Send a message and wait for its reply; `on_draft` is called with drafts before it. Raises as `ask` does."""
        framed = pack(message)
        with _no_answer(self._peer):
            self._send(framed)
            while isinstance(reply := next(self._messages), Notice | Drafted):
                if on_draft and isinstance(reply, Drafted):
                    on_draft(reply.draft)
        if isinstance(reply, Failed):
            raise EngineFailure(reply.code, reply.message)
        return reply

    def _handshake(self, address: Address) -> Welcome:
        handshake = Handshake(address, "dg-lsp")
        said = handshake.hello
        while not isinstance(said, Welcome):
            self._send(pack(said))
            said = handshake.answer(next(self._messages))
        return said

    def _send(self, framed: bytes) -> None:
        self._sock.settimeout(self._timeout_s)
        self._sock.sendall(framed)

    def _received(self, timeout_s: float) -> Iterator[EngineMessage]:
        splitter = FrameSplitter()
        while data := self._read(timeout_s):
            for body in splitter.feed(data):
                yield unpack_from_engine(body)
        raise ConnectionResetError("it closed the connection")

    def _read(self, timeout_s: float) -> bytes:
        """Raises TimeoutError, at once for a process that is stopped."""
        ends = time.monotonic() + timeout_s
        while True:
            self._sock.settimeout(max(min(_LOOK_S, ends - time.monotonic()), 0.001))
            try:
                return self._sock.recv(_CHUNK_NBYTES)
            except TimeoutError:
                if time.monotonic() >= ends or is_stopped(self._peer):
                    raise


class Handshake:
    """The client's part of the handshake, independent of the transport. Over TCP each end proves its identity."""

    def __init__(self, address: Address, client: str, package: str = "") -> None:
        self._proving = ClientSide(address.secret) if isinstance(address, TcpAddress) else None
        nonce = self._proving.nonce if self._proving else b""
        self.hello: ClientMessage | Welcome = Hello(version=VERSION, client=client, package=package, nonce=nonce)

    def answer(self, message: EngineMessage) -> ClientMessage | Welcome:
        """The next message to send, or the welcome that ends the handshake. Raises EngineFailure, ProtocolError."""
        proving, self._proving = self._proving, None
        if isinstance(message, Failed):
            is_other = message.code == "version"
            raise VersionMismatch(OTHER_VERSION) if is_other else EngineFailure(message.code, message.message)
        if proving:
            if isinstance(message, Challenge):
                return proving.answer(message)
            raise Impostor("The process at the engine's port sent no proof.")
        if not isinstance(message, Welcome):
            raise MalformedMessage("its first message is not a welcome")
        return message


def ask(message: ClientMessage, timeout_s: float = 10.0) -> EngineMessage | None:
    """The engine's reply; None where no engine runs. Raises EngineError for a refusal, NoAnswer for silence, BodyError
    for a message that can't be sent."""
    with conversation(timeout_s) as exchange:
        return exchange(message) if exchange else None


@contextlib.contextmanager
def conversation(timeout_s: float) -> Generator[Exchange | None]:
    """One connection for several messages; None where no engine runs. Raises as `ask` does."""
    with contextlib.ExitStack() as stack:
        try:
            met = stack.enter_context(_met(timeout_s))
        except (FileNotFoundError, ConnectionRefusedError):
            met = None
        except OSError as error:
            raise NoAnswer(f"The engine can't be reached ({error}).") from None
        yield Exchange(*met, timeout_s) if met else None


def running_peer() -> Peer | None:
    """The process that serves the engine's address, according to the system; None where unknown."""
    try:
        with _met(1.0) as met:
            return _peer(*met) if met else None
    except NoAnswer as hung:
        return hung.peer
    except OSError:
        return None


def welcome(timeout_s: float) -> Welcome | None:
    """The welcome of a running engine; None if there is none or it is ending. Waits for an engine that is starting.
    Raises as `ask` does for one that hangs or accepts no client."""
    try:
        with conversation(timeout_s) as exchange:
            return exchange.welcome if exchange and exchange.stays else None
    except Broken:
        return None


@contextlib.contextmanager
def _met(timeout_s: float) -> Generator[tuple[socket.socket, Address] | None]:
    """A connection to the published address; None where there is none. Raises OSError where nothing listens."""
    address = find_engine()
    if address is None:
        yield None
    else:
        with _connect(address, timeout_s) as sock:
            yield sock, address


@contextlib.contextmanager
def _no_answer(peer: Peer | None) -> Generator[None]:
    try:
        yield
    except TimeoutError:
        raise NoAnswer(_HANGS, peer) from None
    except VersionMismatch as error:
        raise NoAnswer(f"{error} `dg-lsp engine restart` replaces it.", peer) from None
    except (OSError, ProtocolError) as error:
        raise Broken(f"The connection to the engine broke ({error}): try again.", peer) from None


def _peer(sock: socket.socket, address: Address) -> Peer | None:
    return listener(address.pid, address.port) if isinstance(address, TcpAddress) else peer_of(sock)


def _connect(address: Address, timeout_s: float) -> socket.socket:
    try:
        if isinstance(address, TcpAddress):
            return socket.create_connection(("127.0.0.1", address.port), min(timeout_s, _HANDSHAKE_S))
        return connected(address)
    except (BlockingIOError, TimeoutError):
        raise NoAnswer(_HANGS, unmet(address)) from None


def connected(address: UnixAddress) -> socket.socket:
    """A connected Unix socket. Raises OSError; BlockingIOError where the queue of connections is full."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        # Connect at once or not at all: a blocking socket would wait for ever.
        sock.setblocking(False)
        sock.connect(address.path)
    except OSError:
        sock.close()
        raise
    return sock


def unmet(address: Address) -> Peer | None:
    """The process at an address that accepts no connection, found without a socket."""
    return listener(address.pid, address.port) if isinstance(address, TcpAddress) else holder(lock_path())
