"""The engine's client: finds or starts an engine, sends requests, replaces an engine that dies."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from dg_lsp.backend.connection import EngineConnection, EngineReply, EngineSilent, Request, open_connection, started
from dg_lsp.backend.launch import Launch, begin
from dg_lsp.backend.timeouts import Timeouts
from engine.common import messages
from engine.common.address import find_engine
from engine.common.analysis import Analysis
from engine.common.client import EngineFailure
from engine.common.errors import BadInput, ProtocolError, VersionMismatch
from engine.common.peercred import kill
from engine.common.request import Draft, Filled, FillRequest
from engine.common.runtime_paths import log_dir

R = TypeVar("R", bound=EngineReply)


class EngineClient:
    """The engine as callers see it: requests and one state. All methods belong to one event loop. `on_state` is called
    with every change of state, in order, `on_advice` with a sentence that the user should read once.

    `launch()` is awaited each time an engine has to be started. `begun`: the process of a start that is under way.
    """

    def __init__(
        self,
        launch: Callable[[], Awaitable[Launch]],
        *,
        client: str = "",
        on_state: Callable[[messages.EngineState], None] = lambda _: None,
        on_advice: Callable[[str], None] = lambda _: None,
        timeouts: Timeouts | None = None,
        begun: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self._launch = launch
        self._begun = begun
        self._client = client
        self._on_state = on_state
        self._on_advice = on_advice
        self.timeouts = timeouts or Timeouts()
        self._ids = itertools.count(1)
        self._connection: EngineConnection | None = None
        self._connecting: asyncio.Task[EngineConnection] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._closed = False
        self._failures = 0
        self._deaths = 0
        """How many engines ended since the last answer."""
        self._retry_at = 0.0
        self.state = messages.EngineState(name="off")
        self.model = ""
        """The model that the engine was started with; empty until connected."""

    async def fill(
        self,
        request: FillRequest,
        *,
        document: str = "",
        priority: messages.Priority = "interactive",
        on_draft: Callable[[Draft], None] | None = None,
        timeout_s: float | None = None,
    ) -> Filled:
        """Fill a gap; cancelling the task cancels the work. A newer fill with the same `document` fails this one.

        Raises EngineFailure, whose code says whether the user should hear of it ("superseded": no).
        """

        drafts = on_draft is not None
        message = messages.Fill(
            id=next(self._ids), request=request, document=document, priority=priority, drafts=drafts
        )
        bound_s = self.timeouts.fill_s if timeout_s is None else timeout_s
        filled = (await self._ask(message, messages.FillReply, bound_s, on_draft)).filled
        self._deaths = 0
        return filled

    async def analyze(self, text: str, cursor: int, language: str, start: int | None = None) -> Analysis:
        """Syntax errors in a text, the placeholder at a cursor, and what could be done with the selection from `start`
        to it, without the model. Raises EngineFailure."""
        message = messages.Analyze(id=next(self._ids), text=text, cursor=cursor, start=start, language=language)
        bound_s = self.timeouts.analyze_s + self.timeouts.grace_s
        return (await self._ask(message, messages.AnalyzeReply, bound_s)).analysis

    async def warm(self) -> None:
        """Load the weights if they are not loaded. Raises EngineFailure."""
        await self._ask(messages.Warm(id=next(self._ids)), messages.Done, self.timeouts.fill_s)

    def retry(self) -> None:
        """Let the next request start an engine, however lately one failed."""
        self._retry_at = 0.0

    async def status(self) -> messages.EngineStatus:
        """The engine's status. Raises EngineFailure."""
        bound_s = self.timeouts.start_s + self.timeouts.busy_s
        return (await self._ask(messages.StatusQuery(id=next(self._ids)), messages.StatusReply, bound_s)).status

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
        """Disconnect; the engine keeps running for others."""
        self._closed = True
        tasks: list[asyncio.Task[Any]] = [*self._background, *([self._connecting] if self._connecting else ())]
        if self._connection:
            tasks += self._connection.tasks()
            self._connection.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _ask(
        self, message: Request, kind: type[R], bound_s: float, on_draft: Callable[[Draft], None] | None = None
    ) -> R:
        try:
            async with asyncio.timeout(bound_s):
                reply = await (await self.connect()).request(message, on_draft)
        except TimeoutError:
            raise EngineFailure(
                "timeout", f"The engine gave no answer within {bound_s:g} s: try again, or run `dg-lsp engine restart`."
            ) from None
        if not isinstance(reply, kind):
            raise EngineFailure("protocol", f"The engine answered with {type(reply).__name__}.")
        return reply

    async def _connect(self) -> EngineConnection:
        try:
            async with asyncio.timeout(self.timeouts.start_s):
                begun, self._begun = self._begun, None
                if begun:
                    self._show(messages.EngineState(name="starting"))
                    await started(begun)
                connection = await self._find() or await self._start()
        except _TooSoon:
            raise
        except TimeoutError:
            raise self._no_engine(
                f"The engine did not start within {self.timeouts.start_s:g} s; run `dg-lsp doctor`."
            ) from None
        except (EngineFailure, BadInput) as error:
            raise self._no_engine(str(error)) from None
        self._failures = 0
        return connection

    async def _start(self) -> EngineConnection:
        if self._stopped:
            raise EngineFailure("unavailable", self.state.message or "The engine was stopped.")
        if time.monotonic() < self._retry_at:
            raise _TooSoon("unavailable", self.state.message or "The engine did not start; run `dg-lsp doctor`.")
        self._show(messages.EngineState(name="starting"))
        try:
            await started(begin(await self._launch()))
            while not (connection := await self._find()):
                await asyncio.sleep(0.1)
        except BaseException:  # a start that takes too long is cancelled
            self._hold_off(self._failures)
            self._failures += 1
            raise
        return connection

    async def _find(self) -> EngineConnection | None:
        address = find_engine()
        if address is None:
            return None
        try:
            connection, welcome = await open_connection(address, self._client, self.timeouts, self._notice, self._lost)
        except EngineSilent as silent:
            kill(silent.peer)
            return None
        except VersionMismatch as error:
            raise EngineFailure("version", f"{error} Run `dg-lsp engine restart`.") from None
        except (OSError, EOFError, ProtocolError):
            return None  # A stale socket file, or a port that now is somebody else's.
        if welcome.state.name == "stopping":
            connection.close()
            return None
        self._connection = connection
        self.model = welcome.model
        self._stopped = False
        self._notice(messages.Notice(state=welcome.state))
        connection.listen()
        return connection

    def _no_engine(self, message: str) -> EngineFailure:
        self._show(messages.EngineState(name="off" if self._stopped else "error", message=message))
        return EngineFailure("unavailable", message)

    def _connect_ended(self, task: asyncio.Task[EngineConnection]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # Whoever waits sees it; retrieved here in case nobody does.

    def _notice(self, notice: messages.Notice) -> None:
        state = notice.state
        if state.name == "stopping":
            self._stopped = True
            state = messages.EngineState(name="off", message=state.message)
        self._show(state)
        if notice.advice:
            self._on_advice(notice.advice)

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
                self._show(messages.EngineState(name="starting"))
            else:
                # What ends engine after engine shall not keep the machine busy starting them.
                delay_s = self._hold_off(self._deaths - 2)
                message = (
                    f"The engine ended {self._deaths} times without an answer; the next one starts in {delay_s:g} s. "
                    f"{log_dir() / 'engine.crash'} may say why."
                )
                self._show(messages.EngineState(name="error", message=message))
        task = asyncio.create_task(self._revive(was_ready), name="engine revival")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _hold_off(self, times: int) -> float:
        # Doubled no oftener than a number can be.
        delay_s = min(self.timeouts.first_retry_s * 2 ** min(times, 16), self.timeouts.last_retry_s)
        self._retry_at = time.monotonic() + delay_s
        return delay_s

    async def _revive(self, was_ready: bool) -> None:
        while self._stopped and not self._closed:
            await asyncio.sleep(self.timeouts.return_s)
            # Its socket may be there though it has not gone yet, or does not listen yet.
            with contextlib.suppress(EngineFailure, BadInput):
                if find_engine():
                    await self.connect()
        if not self._connection:
            await asyncio.sleep(max(self._retry_at - time.monotonic(), 0))
        # What goes wrong is in the state already.
        with contextlib.suppress(EngineFailure):
            await self.connect()
            if was_ready:
                # An engine that died while it was loading might do so again; that one waits for a request.
                await self.warm()

    def _show(self, state: messages.EngineState) -> None:
        if state != self.state:
            self.state = state
            self._on_state(state)


class _TooSoon(EngineFailure):
    """No engine runs, and the next one may not be started yet."""
