"""One fill at a time for each document: the newest request takes the place of the one before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dg_lsp.suggest.debounce import Rhythm
from engine.core.request import Filled, FillRequest

Ask = Callable[[FillRequest, str], Awaitable[Filled | None]]


@dataclass(slots=True, kw_only=True)
class _Job:
    request: FillRequest
    task: asyncio.Task[Filled | None]
    kept: bool
    """Goes on even if nobody waits for it."""
    waiting: int = 0


class Desk:
    """Asks the engine, through `ask(request, document)`, and knows what is under way for each document."""

    def __init__(self, ask: Ask, rhythm: Rhythm) -> None:
        self._ask = ask
        self._rhythm = rhythm
        self._jobs: dict[str, _Job] = {}
        self.asked = 0
        self.superseded = 0

    async def fill(self, document: str, request: FillRequest) -> Filled | None:
        """The answer to a request, or None where there is none or a newer request took its place.

        The same request as the latest one shares its answer, if there is one. When nobody waits any more the work is
        cancelled. Raises what `ask` raises.
        """
        job = self._job(document, request, kept=False)
        job.waiting += 1
        try:
            # Unlike awaiting the task, waiting tells its cancellation from one's own.
            await asyncio.wait({job.task})
        finally:
            job.waiting -= 1
            if not job.waiting and not job.kept:
                job.task.cancel()
        return None if job.task.cancelled() else job.task.result()

    def begin(self, document: str, request: FillRequest) -> None:
        """Start on a request that is expected to come."""
        # Whoever comes sees the failure; if nobody does, it does not matter.
        self._job(document, request, kept=True).task.add_done_callback(_was_in_vain)

    def supersede(self, document: str) -> None:
        """Give up what is under way for a document."""
        job = self._jobs.pop(document, None)
        if job and not job.task.done():
            self.superseded += 1
            job.task.cancel()

    def _job(self, document: str, request: FillRequest, *, kept: bool) -> _Job:
        held = self._jobs.get(document)
        if held and held.request == request and not _was_in_vain(held.task):
            return held
        self.supersede(document)
        task = asyncio.create_task(self._work(document, request), name=f"fill {document}")
        job = self._jobs[document] = _Job(request=request, task=task, kept=kept)
        return job

    async def _work(self, document: str, request: FillRequest) -> Filled | None:
        delay_ms = self._rhythm.delay_ms(_now_ms())
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        self.asked += 1
        started_ms = _now_ms()
        try:
            filled = await self._ask(request, document)
        except asyncio.CancelledError:
            self._rhythm.gave_up(_now_ms() - started_ms)
            raise
        self._rhythm.answered(_now_ms() - started_ms)
        return filled


def _was_in_vain(task: asyncio.Task[Filled | None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None or task.result() is None)


def _now_ms() -> float:
    return time.monotonic() * 1000
