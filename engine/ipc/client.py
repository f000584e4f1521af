"""How a client meets the engine, and a blocking client for commands: one question, one answer, every wait bounded."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Generator, Iterator
from typing import Literal, Protocol

from engine.core.errors import EngineError, MalformedMessage, ProtocolError, VersionMismatch
from engine.core.request import Draft
from engine.ipc.address import Address, TcpAddress, find_engine
from engine.ipc.challenge import ClientSide, Impostor
from engine.ipc.frames import FrameSplitter
from engine.ipc.messages import (
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
from engine.ipc.peercred import Peer, is_own, listener, peer_of
from engine.ipc.protocol import OTHER_VERSION, VERSION, pack, unpack_from_engine

OnDraft = Callable[[Draft], None]
_CHUNK_NBYTES = 64 * 1024


class NoAnswer(EngineError):
    """Something listens at the engine's address, but there is no talking to it. `peer` is its process, where known."""

    def __init__(self, message: str, peer: Peer | None = None) -> None:
        super().__init__(message)
        self.peer = peer


class EngineFailure(EngineError):
    """The engine did not do what was asked. The message is one sentence for users.

    `code` is the engine's own, or "unavailable" (no engine can be reached or started) or "timeout".
    """

    def __init__(self, code: FailureCode | Literal["unavailable", "timeout"], message: str) -> None:
        super().__init__(message)
        self.code = code


class Exchange(Protocol):
    def __call__(self, message: ClientMessage, on_draft: OnDraft | None = None, /) -> EngineMessage:
        """Send a message, wait for its reply; `on_draft` is told the drafts before that. Raises as `ask` does."""
        ...


class Handshake:
    """How a client and an engine meet, whoever carries their messages; over TCP each proves who it is."""

    def __init__(self, address: Address, client: str, package: str = "") -> None:
        self._proving = ClientSide(address.secret) if isinstance(address, TcpAddress) else None
        nonce = self._proving.nonce if self._proving else b""
        self.hello: ClientMessage | Welcome = Hello(version=VERSION, client=client, package=package, nonce=nonce)

    def answer(self, message: EngineMessage) -> ClientMessage | Welcome:
        """What to say next, or the welcome that ends it. Raises EngineFailure, ProtocolError."""
        proving, self._proving = self._proving, None
        if isinstance(message, Failed):
            is_other = message.code == "version"
            raise VersionMismatch(OTHER_VERSION) if is_other else EngineFailure(message.code, message.message)
        if proving:
            if isinstance(message, Challenge):
                return proving.answer(message)
            raise Impostor("What listens at the engine's port proves nothing.")
        if not isinstance(message, Welcome):
            raise MalformedMessage("its first message is no welcome")
        return message


def ask(message: ClientMessage, timeout_s: float = 10.0) -> EngineMessage | None:
    """The engine's reply, or None where no engine runs. Raises EngineError for a refusal, NoAnswer for silence,
    BodyError for what can't be sent."""
    with conversation(timeout_s) as exchange:
        return exchange(message) if exchange else None


@contextlib.contextmanager
def conversation(timeout_s: float) -> Generator[Exchange | None]:
    """One connection for several messages, or None where no engine runs. Raises as `ask` does."""
    with contextlib.ExitStack() as stack:
        try:
            met = stack.enter_context(_met(timeout_s))
        except (FileNotFoundError, ConnectionRefusedError):
            met = None
        except OSError as error:
            raise NoAnswer(f"The engine can't be reached ({error}).") from None
        yield _exchange_over(*met) if met else None


def running_peer() -> Peer | None:
    """The process that serves the engine's address, by the system's word; None where none does, or nobody can tell."""
    with contextlib.suppress(OSError), _met(1.0) as met:
        return _peer(*met) if met else None
    return None


def welcome() -> Welcome | None:
    """The welcome of an engine that is there to stay, or None."""
    with contextlib.suppress(OSError, EngineFailure, ProtocolError), _met(1.0) as met:
        answer = _handshake(*met)[0] if met else None
        return answer if answer and answer.state.name != "stopping" else None
    return None


@contextlib.contextmanager
def _met(timeout_s: float) -> Generator[tuple[socket.socket, Address] | None]:
    """A connection to where an engine was found, or None. Raises OSError where nobody is there any more."""
    address = find_engine()
    if address is None:
        yield None
    else:
        with _connect(address, timeout_s) as sock:
            yield sock, address


def _exchange_over(sock: socket.socket, address: Address) -> Exchange:
    peer = _peer(sock, address)
    if not is_own(peer):
        raise EngineError("The engine's socket is served by another user; set DG_LSP_RUNTIME_DIR.")
    with _no_answer(peer):
        _, messages = _handshake(sock, address)

    def exchange(message: ClientMessage, on_draft: OnDraft | None = None, /) -> EngineMessage:
        framed = pack(message)
        with _no_answer(peer):
            sock.sendall(framed)
            while isinstance(reply := next(messages), Notice | Drafted):
                if on_draft and isinstance(reply, Drafted):
                    on_draft(reply.draft)
        if isinstance(reply, Failed):
            raise EngineFailure(reply.code, reply.message)
        return reply

    return exchange


@contextlib.contextmanager
def _no_answer(peer: Peer | None) -> Generator[None]:
    try:
        yield
    except TimeoutError:
        raise NoAnswer("The engine does not answer; `dg-lsp engine stop` ends it.", peer) from None
    except VersionMismatch as error:
        raise NoAnswer(f"{error} `dg-lsp engine restart` replaces it.", peer) from None
    except (OSError, ProtocolError) as error:
        raise NoAnswer(f"The conversation with the engine broke ({error}); try again.", peer) from None


def _peer(sock: socket.socket, address: Address) -> Peer | None:
    return listener(address.pid, address.port) if isinstance(address, TcpAddress) else peer_of(sock)


def _connect(address: Address, timeout_s: float) -> socket.socket:
    if isinstance(address, TcpAddress):
        return socket.create_connection(("127.0.0.1", address.port), timeout_s)
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(timeout_s)
        sock.connect(address.path)
    except OSError:
        sock.close()
        raise
    return sock


def _handshake(sock: socket.socket, address: Address) -> tuple[Welcome, Iterator[EngineMessage]]:
    """Say hello; the welcome, and the messages that follow."""
    messages, handshake = _messages(sock), Handshake(address, "dg-lsp")
    said = handshake.hello
    while not isinstance(said, Welcome):
        sock.sendall(pack(said))
        said = handshake.answer(next(messages))
    return said, messages


def _messages(sock: socket.socket) -> Iterator[EngineMessage]:
    splitter = FrameSplitter()
    while data := sock.recv(_CHUNK_NBYTES):
        for body in splitter.feed(data):
            yield unpack_from_engine(body)
    raise ConnectionResetError("it closed the connection")
