"""The language server's engine: found, started, asked, replaced when it dies. Callers see fills and one state."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TypeVar

from dg_lsp.backend.connection import EngineConnection, EngineFailure, EngineWedged, Reply, open_connection, watch
from dg_lsp.backend.heartbeat import Silence
from dg_lsp.backend.launch import Launch, start
from engine.core.analysis import Analysis
from engine.core.errors import BadInput, ProtocolError
from engine.core.request import Draft, Filled, FillRequest
from engine.core.runtime_paths import log_dir
from engine.ipc.address import find_engine
from engine.ipc.messages import (
    Analyze,
    AnalyzeReply,
    Cancel,
    ClientMessage,
    Done,
    EngineState,
    EngineStatus,
    Fill,
    FillReply,
    Notice,
    Priority,
    StatusQuery,
    StatusReply,
    Warm,
)
from engine.ipc.peercred import kill

R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds."""

    start_s: float = 90.0
    """For an engine to start and answer."""
    beat_s: float = 1.0
    """Of silence, while somebody waits, before the engine is asked for a sign of life."""
    silence: Silence = field(default_factory=Silence)
    """For that sign to come, or for a welcome; an engine that needs longer is replaced."""
    fill_s: float = 120.0
    """For an answer, when the caller names no bound."""
    analyze_s: float = 1.5
    """For what needs no model; a list of actions is of no use later."""
    return_s: float = 1.0
    """Between looks for an engine that was stopped and may be started again."""
    first_retry_s: float = 1.0
    last_retry_s: float = 60.0
    """After a failed start the next one waits, twice as long each time; so it does after engines that ended unasked and
    answered nothing, from the second on."""


class EngineClient:
    """All methods belong to one event loop. `on_state` is told every change of state, in order.

    `launch` is asked each time an engine is to be started; where one runs already, it isn't.
    """

    def __init__(
        self,
        launch: Callable[[], Awaitable[Launch]],
        *,
        client: str = "",
        on_state: Callable[[EngineState], None] = lambda _: None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._launch = launch
        self._client = client
        self._on_state = on_state
        self._timeouts = timeouts or Timeouts()
        self._connection: EngineConnection | None = None
        self._connecting: asyncio.Task[EngineConnection] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._watched: EngineConnection | None = None
        self._stopped = False
        self._closed = False
        self._failures = 0
        self._deaths = 0
        """Engines that ended since the last answer."""
        self._retry_at = 0.0
        self.state = EngineState(name="off")

    async def fill(
        self,
        request: FillRequest,
        *,
        document: str = "",
        priority: Priority = "interactive",
        on_draft: Callable[[Draft], None] | None = None,
        timeout_s: float | None = None,
    ) -> Filled:
        """Fill a gap; cancelling the task cancels the work. A newer fill with the same `document` fails this one.

        Raises EngineFailure: its code says whether that is worth a word ("superseded" is not).
        """

        def message(number: int) -> Fill:
            wants_drafts = on_draft is not None
            return Fill(id=number, request=request, document=document, priority=priority, drafts=wants_drafts)

        bound_s = self._timeouts.fill_s if timeout_s is None else timeout_s
        filled = (await self._ask(message, FillReply, bound_s, on_draft)).filled
        self._deaths = 0
        return filled

    async def analyze(self, text: str, cursor: int, language: str) -> Analysis:
        """What a text offers at a place, without the model. Raises EngineFailure."""

        def message(number: int) -> Analyze:
            return Analyze(id=number, text=text, cursor=cursor, language=language)

        return (await self._ask(message, AnalyzeReply, self._timeouts.analyze_s)).findings

    async def warm(self) -> None:
        """Load the weights if they are not loaded. Raises EngineFailure."""
        await self._ask(lambda number: Warm(id=number), Done, self._timeouts.fill_s)

    async def status(self) -> EngineStatus:
        """The engine's own account. Raises EngineFailure."""
        bound_s = self._timeouts.start_s + self._timeouts.silence.busy_s
        return (await self._ask(lambda number: StatusQuery(id=number), StatusReply, bound_s)).status

    async def connect(self) -> EngineConnection:
        """The live connection; finds or starts an engine if there is none. Raises EngineFailure."""
        if self._connection:
            return self._connection
        if self._closed:
            raise EngineFailure("unavailable", "The client is closed.")
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect(), name="engine connection")
            self._connecting.add_done_callback(self._connect_ended)
        # One caller's cancel must not take the connection from the others.
        return await asyncio.shield(self._connecting)

    async def close(self) -> None:
        """Let go of the engine, which goes on for others; nothing is awaited after this."""
        self._closed = True
        if self._connection:
            self._connection.close()
        tasks = [task for task in (self._connecting, *self._background) if task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _ask(
        self,
        make: Callable[[int], ClientMessage],
        kind: type[R],
        bound_s: float,
        on_draft: Callable[[Draft], None] | None = None,
    ) -> R:
        connection = waiting = None
        try:
            async with asyncio.timeout(bound_s):
                connection = await self.connect()
                self._watch(connection)
                waiting = connection.waiting(on_draft)
                connection.send(make(waiting.id), waiting)
                reply = await waiting.reply
        except TimeoutError:
            raise EngineFailure("timeout", f"The engine gave no answer within {bound_s:g} s.") from None
        finally:
            # Awaiting cancels the reply along with the caller.
            if connection and waiting and waiting.reply.cancelled():
                self._give_up(connection, waiting.id)
        if not isinstance(reply, kind):
            raise EngineFailure("protocol", f"The engine answered with {type(reply).__name__}.")
        return reply

    def _give_up(self, connection: EngineConnection, number: int) -> None:
        # A connection that takes no more is lost, and its work with it.
        with contextlib.suppress(EngineFailure):
            connection.send(Cancel(id=number))

    def _watch(self, connection: EngineConnection) -> None:
        if self._watched is not connection:
            self._watched = connection
            self._in_background(self._follow(connection))

    async def _follow(self, connection: EngineConnection) -> None:
        """Replace an engine that says nothing any more while it is waited for."""
        try:
            lives = await watch(connection, self._timeouts.beat_s, self._timeouts.silence)
        finally:
            self._watched = None if self._watched is connection else self._watched
        if not lives:
            connection.kill_peer()
            connection.close()

    async def _connect(self) -> EngineConnection:
        try:
            async with asyncio.timeout(self._timeouts.start_s):
                connection = await self._find_or_start()
        except _TooSoon:
            raise
        except TimeoutError:
            raise self._start_failed(
                f"The engine did not start within {self._timeouts.start_s:g} s; run `dg-lsp doctor`."
            ) from None
        except (EngineFailure, BadInput) as error:
            raise self._start_failed(str(error)) from None
        self._connection = connection
        self._stopped = False
        self._failures = 0
        return connection

    async def _find_or_start(self) -> EngineConnection:
        launched = False
        while True:
            connection = await self._find()
            if connection:
                return connection
            if self._stopped:
                raise EngineFailure("unavailable", "The engine was stopped; run `dg-lsp engine run --detach`.")
            if launched:
                await asyncio.sleep(0.1)
            elif time.monotonic() < self._retry_at:
                raise _TooSoon("unavailable", self.state.message or "The engine did not start; run `dg-lsp doctor`.")
            else:
                self._show(EngineState(name="starting"))
                await start(await self._launch())
                launched = True

    async def _find(self) -> EngineConnection | None:
        address = find_engine()
        if address is None:
            return None
        try:
            connection, welcome = await open_connection(
                address, self._client, self._timeouts.silence, self._notice, self._lost
            )
        except EngineWedged as wedged:
            kill(wedged.peer)
            return None
        except (OSError, ProtocolError):
            return None  # A stale socket file, or a port that now is somebody else's.
        if welcome.state.name == "stopping":
            connection.close()
            return None
        self._notice(Notice(state=welcome.state))
        return connection

    def _start_failed(self, message: str) -> EngineFailure:
        delay_s = min(self._timeouts.first_retry_s * 2**self._failures, self._timeouts.last_retry_s)
        self._failures += 1
        self._retry_at = time.monotonic() + delay_s
        self._show(EngineState(name="off" if self._stopped else "error", message=message))
        return EngineFailure("unavailable", message)

    def _connect_ended(self, task: asyncio.Task[EngineConnection]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # Seen by whoever waits; nobody may be left to.

    def _notice(self, notice: Notice) -> None:
        state = notice.state
        if state.name == "stopping":
            self._stopped = True
            state = EngineState(name="off", message=state.message)
        self._show(state)

    def _lost(self, connection: EngineConnection) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        if self._closed:
            return
        was_ready = self.state.name == "ready"
        if not self._stopped:
            self._deaths += 1
            if self._deaths == 1:
                # An engine that died is replaced before the next keystroke asks for it.
                self._show(EngineState(name="starting"))
            else:
                self._back_off()
        self._in_background(self._revive(was_ready))

    def _back_off(self) -> None:
        """What ends engine after engine shall not keep the machine busy starting them."""
        delay_s = min(self._timeouts.first_retry_s * 2 ** (self._deaths - 2), self._timeouts.last_retry_s)
        self._retry_at = time.monotonic() + delay_s
        message = (
            f"The engine ended {self._deaths} times without an answer; the next one starts in {delay_s:g} s. "
            f"{log_dir() / 'engine.crash'} may say why."
        )
        self._show(EngineState(name="error", message=message))

    async def _revive(self, was_ready: bool) -> None:
        while self._stopped and not self._closed and not _leaves_trace():
            await asyncio.sleep(self._timeouts.return_s)
        await asyncio.sleep(max(self._retry_at - time.monotonic(), 0))
        # What goes wrong is in the state already.
        with contextlib.suppress(EngineFailure):
            await self.connect()
            if was_ready:
                # An engine that died while it was loading might do so again; that one waits for a request.
                await self.warm()

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _show(self, state: EngineState) -> None:
        if state != self.state:
            self.state = state
            self._on_state(state)


class _TooSoon(EngineFailure):
    """No engine runs, and it is not time yet to start the next one."""


def _leaves_trace() -> bool:
    try:
        return find_engine() is not None
    except BadInput:
        return False
