"""Bounds on HTTP: who may connect, how much, for how long. Work ends when its client has gone."""

from __future__ import annotations

import asyncio
import hmac
import re
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from ipaddress import ip_address
from typing import Any

from engine.common.http_address import HttpAddress
from engine.common.server_address import is_loopback
from engine.server.http.bodies import HttpError
from engine.server.settings import HttpBounds

AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[AsgiMessage, Receive, Send], Awaitable[None]]
Refusal = Callable[[str, HttpError], App]
_HOST = re.compile(r"(?:\[(?P<bracketed>[0-9a-fA-F:.]+)\]|(?P<plain>[^\[\]:@]*))(?::[0-9]*)?")
OPEN_TO_ALL = ("/health", "/v1/health")
"""Paths that need no token, for monitoring."""
GONE = 499
"""The status in the counts of requests whose client hung up."""


class Gate:
    """An ASGI application around another one, which gets each body whole. `refusal` makes a path's answer to a rejected
    request; `paths` are those of the application."""

    def __init__(
        self,
        app: App,
        refusal: Refusal,
        paths: Collection[str],
        *,
        address: HttpAddress,
        token: str,
        bounds: HttpBounds,
    ) -> None:
        self._app = app
        self._refusal = refusal
        self._paths = paths
        self._address = address
        self._token = token.encode()
        self._bounds = bounds
        self._inside = 0
        self.answered: Counter[tuple[str, int]] = Counter()
        """Requests by path and status; all unknown paths count as one."""

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        # Clients put paths together from an address and an endpoint, and either may bring a slash too many.
        scope = {**scope, "path": "/" + "/".join(filter(None, scope["path"].split("/")))}
        self._inside += 1
        try:
            app, body = self._app, b""
            try:
                self._check(scope)
                body = await self._body(receive)
            except HttpError as error:
                app = self._refusal(scope["path"], error)
            except ConnectionError:
                self._count(scope, GONE)
                return
            await self._until_gone(app, scope, receive, send, body)
        finally:
            self._inside -= 1

    def _check(self, scope: AsgiMessage) -> None:
        """Raises HttpError for a client that may not connect."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        # A page of a browser has the one or the other of these, and no editor has.
        if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
            raise HttpError(403, "Requests from web pages are refused.")
        if not _is_ours(headers.get("host", ""), self._address):
            raise HttpError(403, "The Host header names another machine: ask by localhost or by an IP address.")
        if {"content-length", "transfer-encoding"} <= headers.keys():
            # Somebody in between may see the end of the body elsewhere, and a second request in it.
            raise HttpError(400, "A body has a Content-Length or a Transfer-Encoding, not both.", closes=True)
        if self._token and scope["path"] not in OPEN_TO_ALL:
            kind, _, given = headers.get("authorization", "").partition(" ")
            given = given.strip() if kind.lower() == "bearer" else headers.get("x-api-key", "")
            if not hmac.compare_digest(given.encode(), self._token):
                raise HttpError(401, "The token is missing or wrong: send it as `Authorization: Bearer TOKEN`.")
        if self._inside > self._bounds.requests:
            raise HttpError(503, "Too many requests at once: try again in a moment.")

    async def _body(self, receive: Receive) -> bytes:
        """Raises HttpError for one that is too large or too slow, ConnectionError where it breaks off."""
        parts, size, more = list[bytes](), 0, True
        try:
            async with asyncio.timeout(self._bounds.body_s):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionResetError
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    if size > self._bounds.body_nbytes:
                        raise HttpError(413, f"The body is larger than {self._bounds.body_nbytes} bytes.")
        except TimeoutError:
            raise HttpError(408, "The body did not come in time.") from None
        return b"".join(parts)

    async def _until_gone(self, app: App, scope: AsgiMessage, receive: Receive, send: Send, body: bytes) -> None:
        ended = False

        async def send_on(message: AsgiMessage) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                self._count(scope, message["status"])
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        left = [body]

        async def received() -> AsgiMessage:
            if left:
                return {"type": "http.request", "body": left.pop(), "more_body": False}
            return await asyncio.Future[AsgiMessage]()  # who has gone is seen to here

        async def leave() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        work, gone = asyncio.ensure_future(app(scope, received, send_on)), asyncio.ensure_future(leave())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not ended:
                self._count(scope, GONE)
                return
            await work
        finally:
            for each in (work, gone):
                each.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    def _count(self, scope: AsgiMessage, status: int) -> None:
        self.answered[scope["path"] if scope["path"] in self._paths else "other", status] += 1


def _is_ours(host: str, address: HttpAddress) -> bool:
    """Whether a Host header means this machine. A foreign web page can point its own host name at our address, but that
    name is neither ours nor a bare address."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = (found["bracketed"] or found["plain"] or "").lower().rstrip(".")
    if is_loopback(name):
        return True
    if address.local:
        return False
    own = {address.host.lower(), socket.gethostname().lower(), socket.gethostname().lower().partition(".")[0]}
    try:
        return bool(ip_address(name))
    except ValueError:
        return name in own
