"""The HTTP server: a listening socket, with uvicorn's protocol on the engine's own event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from engine.common.credentials import http_token
from engine.common.http_address import HttpAddress, http_address
from engine.server.connection import Host
from engine.server.http.app import PATHS, HttpApp, refusal
from engine.server.http.fills import HttpFills
from engine.server.http.gate import Gate
from engine.server.http.prerequisites import bound
from engine.server.settings import EngineOptions, HttpBounds

_BACKLOG = 128


class HttpListener:
    """The open HTTP server, until it is closed. All methods belong to the event loop."""

    def __init__(self, server: asyncio.Server, requested: HttpAddress, state: ServerState, fills: HttpFills) -> None:
        self._server = server
        self._requested = requested
        self._state = state
        self._fills = fills

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return str(replace(self._requested, port=self._server.sockets[0].getsockname()[1]))

    @property
    def busy(self) -> bool:
        """Whether a request is still being answered."""
        return bool(self._state.tasks)

    def close(self) -> None:
        """Accept no more requests; those that wait for an answer get an error."""
        self._server.close()
        self._fills.close()
        for connection in list(self._state.connections):
            connection.shutdown()


async def listen(settings: EngineOptions, host: Host, client: int) -> HttpListener:
    """Listen where the settings say. `client`: the number that the scheduler knows it by.

    Raises BadInput for an address or a token that can't be used, EngineError where the port is taken.
    """
    address = http_address(settings.http)
    token = http_token(address, settings.http_token_file)
    bounds, fills = settings.http_bounds, HttpFills(host.scheduler, client, settings.limits.jobs_per_client)
    app = HttpApp(host, fills, settings.model)
    gate = Gate(app.asgi(), refusal, PATHS, address=address, token=token, bounds=bounds)
    app.answered = gate.answered
    # What it would log of a request is more than anybody should read.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        gate,
        loop="none",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=bounds.idle_s,
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Punctual(config, state, bounds), sock=bound(address), backlog=_BACKLOG)
    return HttpListener(server, address, state, fills)


class _Punctual(H11Protocol):
    """Drops clients that begin a request and do not finish it, or do not read an answer. The application's own limits
    end a request, not its connection: the client may still send a body slowly, or not read."""

    def __init__(self, config: uvicorn.Config, state: ServerState, bounds: HttpBounds) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self._most = bounds.connections
        self.since_s: float = 0.0
        """When the connection was made, or last had an answer."""
        self._header, self._rest, self._unsent = (
            _Timeout(after_s, self._drop) for after_s in (bounds.header_s, bounds.body_s, bounds.body_s)
        )

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.since_s = self.loop.time()
        self._make_room()
        # Told of every byte that waits to be sent; a closing transport waits for them without end.
        transport.set_write_buffer_limits(high=0)
        self._header.hold(True)

    def data_received(self, data: bytes) -> None:
        # The oldest without a request gave way; there are too many still where all have one. What a connection that
        # gave way has left to do does not count.
        self.limit_concurrency = 0 if len(self.connections) > self._most else None
        super().data_received(data)
        self._header.hold(self.conn.their_state is h11.IDLE)
        self._await_rest()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.since_s = self.loop.time()
        self._await_rest()

    @property
    def waits(self) -> bool:
        """Whether the connection has no complete request yet."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent.hold(True)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unsent.hold(False)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timeout in (self._header, self._rest, self._unsent):
            timeout.hold(False)

    def _make_room(self) -> None:
        """Close the connection that has waited longest without a complete request, so that a new one fits."""
        others = (each for each in self.connections if isinstance(each, _Punctual) and each is not self)
        waiting: list[_Punctual] = [each for each in others if each.waits]
        if waiting and len(self.connections) > self._most:
            # At once: it counts until it is lost.
            oldest = min(waiting, key=attrgetter("since_s"))
            self.connections.discard(oldest)
            oldest.transport.close()

    def _await_rest(self) -> None:
        """Wait for the rest of a body that nobody reads any more."""
        self._rest.hold(self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete)

    def _drop(self) -> None:
        self.transport.abort()


class _Timeout:
    """Calls `late` once a condition holds for that long without a break."""

    def __init__(self, after_s: float, late: Callable[[], None]) -> None:
        self._after_s = after_s
        self._late = late
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, holds: bool) -> None:
        """Say whether the condition holds from now on."""
        if holds and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._after_s, self._late)
        elif not holds and self._timer is not None:
            self._timer.cancel()
            self._timer = None
