"""The engine as its clients see it: a listening socket, connections, the model's state, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.common import runtime_paths
from engine.common.address import Claim, TcpAddress, forget_address, write_tcp_address
from engine.common.messages import EngineState, EngineStatus, Failed, Notice, Welcome
from engine.common.peercred import is_own, peer_of
from engine.common.protocol import VERSION, pack
from engine.common.version import __version__
from engine.models.addressed import named
from engine.server import memory
from engine.server.analyzer import Analyzer
from engine.server.connection import Connection
from engine.server.http.prerequisites import check_extra
from engine.server.metrics import Metrics
from engine.server.model_host import ModelHost
from engine.server.scheduler import Job, Scheduler
from engine.server.settings import EngineOptions
from engine.server.watchdog import Watchdog
from engine.server.worker import Worker
from engine.syntax.checker import Checker, Ticket
from engine.syntax.questions import SyntaxCheck
from engine.syntax.suspects import ASIDE_S

if TYPE_CHECKING:
    from engine.models.base import Model
    from engine.server.http.listener import HttpListener

_log = logging.getLogger(__name__)
_JOIN_S = 0.5
_LOOK_S = 1.0
"""Between looks at whether lock and address are still this engine's."""
_BACKLOG = 128
"""Connections that wait to be taken; one more is refused by the system, which looks as if no engine ran."""
_STARTER_S = 10.0
"""For the window that started the engine to come; until then one of another version does not end it."""
_ASIDE = (
    "Checking the syntax of one document failed twice. "
    f"For {ASIDE_S / 60:g} minutes its suggestions are shown unchecked."
)


class EngineServer:
    """Implements `connection.Host`. Everything but `Worker` runs on one event loop."""

    def __init__(
        self,
        settings: EngineOptions,
        load: Callable[[Callable[[float], None]], Model],
        why_no_log: str = "",
        advice: Callable[[], str] = lambda: "",
    ) -> None:
        """`advice`: asked once, when the model is there and a window, for a sentence that windows show their users."""
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        self._connections: dict[int, Connection] = {}
        self._numbers = itertools.count(1)
        self._why_no_log = why_no_log
        self._advice: Callable[[], str] | None = advice
        # What every state says that has nothing more urgent to say.
        self._always = " ".join(filter(None, (named(settings.model).destination, why_no_log)))
        self._state = EngineState(name="unloaded", message=self._always)
        self._began = self._alone_since = time.monotonic()
        self._metrics = Metrics()
        self._had_own_window = False
        self._is_broken = False
        self._http: HttpListener | None = None
        self.bounds = settings.bounds
        self.secret = secrets.token_urlsafe(32) if runtime_paths.uses_tcp() else ""
        self.scheduler = Scheduler(settings.limits)
        self._checker = Checker(crashes=runtime_paths.log_dir() / "syntax.crash")
        self.analyzer = Analyzer(self._checker)
        self._watchdog = Watchdog(settings.stall_s, read_nbytes=memory.read_nbytes)
        self._host = ModelHost(
            load,
            watchdog=self._watchdog,
            unload_after_s=settings.unload_after_s,
            on_state=self._show_from_worker,
        )
        self._worker = Worker(self.scheduler, self._host, self._metrics, self._check_from_worker)

    async def serve(self) -> bool:
        """Serve until the end; returns whether it came in order. Threads may go on, which only leaving the process
        ends."""
        # Before there is a socket, which a process that is being made would have, too.
        await self._checker.start()
        self._http = await self._open_http()
        listener, claim = await self._listen()
        self._worker.start()
        watches = [asyncio.create_task(watch, name="watch") for watch in (self._watch(), self._watch_claim(claim))]
        try:
            await self._ending.wait()
        finally:
            for watch in watches:
                watch.cancel()
            # Gone before the lock is: whoever gets the lock next puts its own there.
            claim.forget()
            listener.close()
            await self._say_farewell()
        await asyncio.to_thread(self._worker.join, _JOIN_S)
        return not self._is_broken

    def stop(self, reason: str) -> None:
        """End the engine soon."""
        if not self._ending.is_set():
            _log.info("stopping: %s", reason)
            message = "The engine was stopped: restart the language server, or run `dg-lsp engine run --detach`."
            self._show(EngineState(name="stopping", message=message))
            self._ending.set()

    def welcome(self) -> Welcome:
        """The end of a handshake."""
        self._give_way()
        ending = EngineState(name="stopping", message="An engine of another version of dg-lsp takes over.")
        return Welcome(
            version=VERSION,
            engine=__version__,
            pid=os.getpid(),
            model=self._settings.model,
            device=self._settings.device,
            state=ending if self._ending.is_set() else self._state,
        )

    def has_room(self) -> bool:
        """Whether one more client can be served."""
        return len(self._clients()) < self._settings.max_clients

    def status(self) -> EngineStatus:
        """The engine's status."""
        now = time.monotonic()
        queued, running = self.scheduler.counts()
        info = self._host.info
        loaded = self._host.loaded_since
        context_tokens, cached_tokens = self._host.context_tokens
        return EngineStatus(
            pid=os.getpid(),
            engine=__version__,
            protocol=VERSION,
            model=self._settings.model,
            auto=self._settings.auto,
            device=info.device if info else self._settings.device,
            instructions=info.instructions if info else None,
            parameters=info.parameters if info else None,
            context_limit=info.context_limit if info else None,
            requested_device=self._settings.device,
            unload_after_s=self._settings.unload_after_s,
            exit_after_s=self._settings.exit_after_s,
            http=self._http.address if self._http else "",
            http_token_file=self._settings.http_token_file,
            stall_after_s=self._settings.stall_s,
            state=self._state,
            up_s=now - self._began,
            loaded_s=None if loaded is None else now - loaded,
            rss_nbytes=memory.rss_nbytes(),
            device_nbytes=memory.device_nbytes() if self._host.torch_imported else 0,
            device_total_nbytes=memory.device_total_nbytes() if self._host.torch_imported else 0,
            memory=info.memory if info else None,
            adapters=self._host.adapters_used,
            clients=tuple(connection.name for connection in self._clients()),
            queued=queued,
            running=running,
            failed=self.scheduler.failures(),
            **self._metrics.read(),
            cached_tokens=cached_tokens,
            context_tokens=context_tokens,
            checker_restarts=self._checker.restarts,
            set_aside=self._checker.aside,
            log=self._why_no_log or str(runtime_paths.log_dir()),
        )

    async def _open_http(self) -> HttpListener | None:
        if not self._settings.http:
            return None
        check_extra()
        from engine.server.http.listener import listen

        return await listen(self._settings, self, next(self._numbers))

    async def _listen(self) -> tuple[asyncio.Server, Claim]:
        with runtime_paths.runtime_dir_usable():
            # What a killed engine left; the lock says that it lives no more.
            forget_address()
            # The lock before anybody can connect: an engine may be stopped then, and find another's when it goes on.
            claim = Claim()
            listener = await (self._listen_by_tcp() if runtime_paths.uses_tcp() else self._listen_by_socket())
            claim.settle()
            return listener, claim

    async def _listen_by_socket(self) -> asyncio.Server:
        path = runtime_paths.socket_path()
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(path))
        # Before anybody can connect.
        path.chmod(0o600)
        # Its own cleaning up goes by the number of the file alone; on another device, a successor's may have the same.
        kept = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
        return await asyncio.start_unix_server(self._meet, sock=bound, backlog=_BACKLOG, **kept)

    async def _listen_by_tcp(self) -> asyncio.Server:
        listener = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        write_tcp_address(TcpAddress(port=port, secret=self.secret, pid=os.getpid()))
        return listener

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Over TCP nobody says who a client is; there it has a secret to know.
        if not self.secret and not is_own(peer_of(writer.get_extra_info("socket"))):
            _log.warning("a client of another user was turned away")
            writer.write(pack(Failed(id=None, code="protocol", message="This engine serves another user.")))
            writer.close()
            return
        number = next(self._numbers)
        strangers = [held for held in self._connections.values() if not held.ready]
        for oldest in strangers[: max(0, len(strangers) + 1 - self.bounds.strangers)]:
            oldest.drop()
        connection = self._connections[number] = Connection(number, reader, writer, self)
        try:
            await connection.run()
        finally:
            del self._connections[number]
            if connection.ready:
                self._alone_since = time.monotonic()
            self._give_way()

    def _clients(self) -> list[Connection]:
        """Those whose handshake is done."""
        return [connection for connection in self._connections.values() if connection.ready]

    def _give_way(self) -> None:
        """End once all windows are of another version: after an upgrade, new files would be imported into old code."""
        versions = {held.package for held in self._clients() if held.package}
        self._had_own_window |= __version__ in versions
        awaits_starter = not self._had_own_window and time.monotonic() - self._began < _STARTER_S
        if versions and __version__ not in versions and not awaits_starter and not self._ending.is_set():
            _log.info("ending: this is version %s, all windows are of %s", __version__, ", ".join(sorted(versions)))
            self._ending.set()

    def _show(self, state: EngineState) -> None:
        advice = ""
        if state.name == "ready" and self._advice is not None and any(held.package for held in self._clients()):
            advice, self._advice = self._advice(), None
        if not state.message and state.name != "loading":
            state = replace(state, message=self._always)
        self._state = state
        for connection in self._clients():
            connection.send(Notice(state=state, advice=advice if connection.package else ""))

    def _show_from_worker(self, state: EngineState) -> None:
        # The loop closes first where the model thread hangs at the end.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._show, state)

    def _check_from_worker(self, job: Job, check: SyntaxCheck) -> None:
        """Have a question about a job's document answered; the reply goes to the scheduler."""
        ticket = Ticket(
            check=check,
            urgency=0 if job.priority == "interactive" else 1,
            deliver=lambda reply: self.scheduler.replied(job, reply),
            wanted=lambda: not job.ended,
        )
        # The loop closes first when the engine ends.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._checker.submit, ticket)

    def _show_aside(self) -> None:
        """Say in the state that documents are set aside, as long as there are any."""
        aside = _ASIDE if self._checker.aside else ""
        troubles = (each.trouble for each in self._host.adapters_used)
        message = " ".join(filter(None, (aside, *troubles, self._always)))
        if self._state.name in ("ready", "unloaded") and self._state.message != message:
            self._show(replace(self._state, message=message))

    async def _watch(self) -> None:
        settings = self._settings
        tick_s = min(1.0, settings.exit_after_s / 4, settings.stall_s / 4)
        while True:
            await asyncio.sleep(tick_s)
            now = time.monotonic()
            self._give_way()
            self._show_aside()
            if not self._clients() and not self._http and now - self._alone_since >= settings.exit_after_s:
                # Nobody stopped it: a client that comes this very moment shall start another.
                _log.info("ending: no client for %g s", settings.exit_after_s)
                self._ending.set()
            trouble = self._trouble_of_worker()
            if trouble:
                self._is_broken = True
                _log.error("%s", trouble)
                self.scheduler.fail_all("internal", "The model hung or broke; the engine is being replaced.")
                self._ending.set()

    async def _watch_claim(self, claim: Claim) -> None:
        """End once no window can find this engine any more."""
        # Where a file system hangs, so does this thread, and nobody waits for it.
        thread = ThreadPoolExecutor(1, "claim")
        holds = True
        while holds:
            await asyncio.sleep(_LOOK_S)
            # What can't be looked at may well be there.
            with contextlib.suppress(OSError):
                holds = await self._loop.run_in_executor(thread, claim.holds)
        _log.info("ending: its address is gone")
        self._ending.set()

    def _trouble_of_worker(self) -> str:
        if self._host.broken:
            return "the device is broken"
        return self._watchdog.bite() if self._worker.is_alive() else "the model thread died"

    async def _say_farewell(self) -> None:
        self.scheduler.close()
        await self._checker.close()
        if self._http:
            self._http.close()
        # One turn of the loop, so that the last replies are written before their connections close.
        await asyncio.sleep(0)
        for connection in self._connections.values():
            connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.bounds.farewell_s):
                while self._connections or (self._http and self._http.busy):
                    await asyncio.sleep(0.01)
