"""One fill at a time for each document: the newest request takes the place of the one before. It is sent at once at
rest, later in a burst of typing that would outrun the answer.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from dg_lsp.backend.resident import Resident
from engine.common.averages import running_average
from engine.common.request import Filled, FillRequest

BURST_GAP_MS = 300.0
"""Keys further apart than this are no burst."""
_MARGIN = 1.25
"""How much longer than usual the next key may take before the burst counts as over."""


@dataclass(slots=True, kw_only=True)
class _Job:
    request: FillRequest
    task: asyncio.Task[Filled | None]
    waiting: int = 0


class InFlight:
    def __init__(self, resident: Resident, debounce: Debounce) -> None:
        self._resident = resident
        self.debounce = debounce
        self._jobs: dict[str, _Job] = {}
        self.sent = 0
        """Requests that went to the engine."""
        self.superseded = 0

    async def fill(self, document: str, request: FillRequest, *, load: bool = False) -> Filled | None:
        """The answer to a request, or None where there is none or a newer request took its place.

        The same request as the latest one shares its answer, if there is one. When nobody waits any more the work is
        cancelled. `load`: wait for the model, too; else it is only woken. Raises what that raises.
        """
        job = self._jobs.get(document)
        if not job or job.request != request or _was_in_vain(job.task):
            self.supersede(document)
            task = asyncio.create_task(self._work(document, request, load=load), name=f"fill {document}")
            job = self._jobs[document] = _Job(request=request, task=task)
        job.waiting += 1
        try:
            # Unlike awaiting the task, waiting tells its cancellation from one's own.
            await asyncio.wait({job.task})
        finally:
            job.waiting -= 1
            if not job.waiting:
                job.task.cancel()
        return None if job.task.cancelled() else job.task.result()

    def supersede(self, document: str) -> None:
        """Give up what is under way for a document."""
        job = self._jobs.pop(document, None)
        if job and not job.task.done():
            self.superseded += 1
            job.task.cancel()

    async def _work(self, document: str, request: FillRequest, *, load: bool) -> Filled | None:
        if not (self._resident.is_ready or (load and await self._resident.wait_until_ready())):
            self._resident.warm()
            return None
        delay_ms = self.debounce.delay_ms(_now_ms())
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        self.sent += 1
        started_ms = _now_ms()
        try:
            filled = await self._resident.fill(request, document)
        except asyncio.CancelledError:
            self.debounce.gave_up(_now_ms() - started_ms)
            raise
        self.debounce.answered(_now_ms() - started_ms)
        return filled


def _was_in_vain(task: asyncio.Task[Filled | None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None or task.result() is None)


def _now_ms() -> float:
    return time.monotonic() * 1000


class Debounce:
    """Running averages of key gaps and of the time an answer takes. All times in milliseconds of one clock."""

    def __init__(self, max_delay_ms: float = 0.0) -> None:
        self.max_delay_ms = max_delay_ms
        self._last_key_ms: float | None = None
        self._gap_ms: float | None = None
        self._answer_ms: float | None = None

    def key(self, now_ms: float) -> None:
        gap_ms = None if self._last_key_ms is None else now_ms - self._last_key_ms
        self._last_key_ms = now_ms
        self._gap_ms = None if gap_ms is None or gap_ms > BURST_GAP_MS else running_average(self._gap_ms, gap_ms)

    def answered(self, took_ms: float) -> None:
        self._answer_ms = running_average(self._answer_ms, took_ms)

    def gave_up(self, after_ms: float) -> None:
        """The model was still at it when it was told to stop, so an answer takes longer than that."""
        if self._answer_ms is None or after_ms > self._answer_ms:
            self._answer_ms = running_average(self._answer_ms, after_ms)

    def forget_answers(self) -> None:
        """Another engine answers from now on."""
        self._answer_ms = None

    def delay_ms(self, now_ms: float) -> float:
        """How long to wait before asking; 0 at rest, and where the answer comes before the next key anyway."""
        if self._gap_ms is None or self._answer_ms is None or self._answer_ms < self._gap_ms:
            return 0.0
        since_key_ms = now_ms - (self._last_key_ms or 0.0)
        return min(max(self._gap_ms * _MARGIN - since_key_ms, 0.0), self.max_delay_ms)
