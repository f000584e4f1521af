"""HTTP to one server: persistent connections, bounds on time and size, one retry where nothing had begun. It has a
thread of its own with an event loop, so that the model thread never waits for the network."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from engine.common.errors import ModelError
from engine.common.server_address import ServerAddress

T = TypeVar("T")
MOST_NBYTES = 16 << 20
"""Largest answer; that for a canvas with all its choices has about 1 MB."""
CONNECT_S = 2.0
_CONNECTIONS = 32
_IDLE_S = 4.0
"""Seconds that an idle connection is kept; uvicorn, which vLLM runs in, closes it after 5 s."""
_SHOWN = 200
"""Most characters of a server's message that are shown to users."""
SWITCH = "`dg-lsp engine restart --model bundled` switches to the model of this machine"
_CUT = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)


class RemoteError(ModelError):
    """A server can't do what was requested."""


class ServerAway(RemoteError):
    """A server can't be reached, or breaks off."""


class ServerClient:
    """A client of one server. All methods may be called on any thread; `run` runs its argument on the client's own."""

    def __init__(self, address: ServerAddress, key: str) -> None:
        """Raises ModelError where the authorities' certificates can't be read. Connects to nothing yet."""
        self._url = address.url
        verify = _trusted(address)
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        shared: dict[str, Any] = {
            "base_url": address.url,
            "headers": headers,
            "verify": verify,
            # Neither a proxy nor a password of somebody's environment: text goes to this address or nowhere.
            "trust_env": False,
            "follow_redirects": False,
            "timeout": httpx2.Timeout(None, connect=CONNECT_S),
        }
        kept = httpx2.Limits(
            max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS, keepalive_expiry=_IDLE_S
        )
        self._kept = httpx2.AsyncClient(limits=kept, **shared)
        # For a second try, whose connection must not have been idle as the first one's was.
        self._fresh = httpx2.AsyncClient(limits=httpx2.Limits(max_keepalive_connections=0), **shared)
        # It would note each request's address.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=_live, args=(self._loop,), name="server client", daemon=True).start()
        self.close = weakref.finalize(self, _close, self._loop, self._kept, self._fresh)
        """Closes connections and thread; happens by itself once nothing refers to the client."""

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start some work; cancelling the future cancels it and closes its connections."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a response. Raises ServerAway, RemoteError for a response without end."""
        return await self._send("GET", path, None)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The same for a POST. The request must be harmless if it is sent twice."""
        return await self._send("POST", path, body)

    async def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        begun: list[int] = []
        try:
            return await self._once(self._kept, method, path, body, begun)
        except _CUT as error:
            if begun:
                raise ServerAway(self._away(f"broke off in the middle of an answer ({_why(error)})")) from None
        except httpx2.TransportError as error:
            raise ServerAway(self._away(_reason(error))) from None
        try:
            return await self._once(self._fresh, method, path, body, begun)
        except httpx2.TransportError as error:
            raise ServerAway(self._away(_reason(error))) from None

    async def _once(
        self, client: httpx2.AsyncClient, method: str, path: str, body: bytes | None, begun: list[int]
    ) -> tuple[int, bytes]:
        request = client.build_request(method, path, content=body)
        response = await client.send(request, stream=True)
        begun.append(response.status_code)
        try:
            held = bytearray()
            async for piece in response.aiter_raw():
                held += piece
                if len(held) > MOST_NBYTES:
                    raise RemoteError(f"The server at {self._url} does not stop answering: ask who runs it.")
            return response.status_code, bytes(held)
        finally:
            await response.aclose()

    def _away(self, what: str) -> str:
        return f"The server at {self._url} {what}: suggestions go on when it is back; {SWITCH}."


def shown(told: str, most: int = _SHOWN) -> str:
    """The beginning of a server's message, for users; empty where it has other than printable characters."""
    begins = told[:most]
    return begins if begins.isprintable() else ""


def _trusted(address: ServerAddress) -> ssl.SSLContext | bool:
    """The trusted certificates: of the system, or of the named authorities."""
    if not address.ca_file:
        return True
    try:
        return ssl.create_default_context(cafile=str(Path(address.ca_file).expanduser()))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: nobody knows that home
        raise ModelError(
            f"{address.ca_file} holds no certificates that can be read: name a PEM file as ca_file."
        ) from None


def _reason(error: httpx2.TransportError) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"has a certificate that is not trusted ({cause.verify_message}; ca_file names an authority)"
        cause = cause.__cause__ or cause.__context__
    return f"can't be reached ({_why(error)})"


def _why(error: Exception) -> str:
    # It may quote what the server sent.
    return shown(str(error).strip().partition("\n")[0].rstrip(".")) or type(error).__name__


def _live(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _close(loop: asyncio.AbstractEventLoop, *clients: httpx2.AsyncClient) -> None:
    async def end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for client in clients:
            with contextlib.suppress(httpx2.HTTPError, OSError):
                await client.aclose()
        loop.stop()

    # At the very end of the process its thread is gone already.
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(end(), loop)
