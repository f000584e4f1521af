"""The path from an HTTP request to the scheduler, the same that an editor's requests take."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator

from engine.common.messages import Drafted, EngineMessage, Fill, Priority, Warm
from engine.common.request import FillRequest
from engine.server.scheduler import Job, Scheduler


class HttpFills:
    """All HTTP clients are one client of the scheduler, so that many of them take no editor's turns. Requests beyond
    its limit wait here in order."""

    def __init__(self, scheduler: Scheduler, client: int, jobs: int) -> None:
        self._scheduler = scheduler
        self._client = client
        self._ids = itertools.count(1)
        self._room = asyncio.Semaphore(jobs)

    def fill(
        self, request: FillRequest, *, drafts: bool, arrived: float, priority: Priority = "interactive"
    ) -> AsyncGenerator[EngineMessage]:
        """The drafts, if they are wanted, and the reply to a request that came at `arrived` (monotonic seconds).
        Closing it cancels the fill."""
        order = Fill(id=next(self._ids), request=request, drafts=drafts, priority=priority)
        return self._replies(order, arrived)

    async def warm(self, arrived: float) -> EngineMessage:
        """Load the model; `Done` when it is there."""
        async with contextlib.aclosing(self._replies(Warm(id=next(self._ids)), arrived)) as replies:
            return await anext(replies)

    def close(self) -> None:
        """End the requests under way."""
        self._scheduler.drop(self._client)

    async def _replies(self, order: Fill | Warm, arrived: float) -> AsyncGenerator[EngineMessage]:
        loop, messages = asyncio.get_running_loop(), asyncio.Queue[EngineMessage]()

        def deliver(message: EngineMessage) -> None:
            # The loop closes first when the engine ends.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(messages.put_nowait, message)

        async with self._room:
            self._scheduler.submit(Job.of(self._client, order, deliver, arrived))
            try:
                while isinstance(message := await messages.get(), Drafted):
                    yield message
                yield message
            finally:
                # Of no effect once it is answered.
                self._scheduler.cancel(self._client, order.id)
