"""One fill at a time for each document: the newest request replaces the previous one. It is sent at once, or after a
delay in a burst of typing that is faster than answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from dg_lsp.backend.resident import Resident
from engine.common.averages import running_average
from engine.common.request import Filled, FillRequest

T = TypeVar("T")
BURST_GAP_MS = 300.0
"""Longest gap between two keys of a burst."""
_MARGIN = 1.25
"""A burst is over once the next key takes longer than usual by this factor."""


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
        self._newest: dict[str, object] = {}
        """What makes the newest request of each document."""
        self.sent = 0
        """Requests that went to the engine."""
        self.superseded = 0

    async def fill(
        self,
        document: str,
        look: Callable[[], Awaitable[T]],
        make: Callable[[T], FillRequest],
        *,
        load: bool = False,
    ) -> Filled | None:
        """The answer to the request that `make` makes of what `look` finds; None where there is none or a newer request
        replaced it.

        A request equal to the latest one shares its answer. The work is cancelled once nobody waits for it. `load`:
        wait until the model is loaded; else only start loading it.
        """
        self._newest[document] = make
        found = await look()
        if self._newest.get(document) is not make:
            return None
        request = make(found)
        job = self._jobs.get(document)
        if not job or job.request != request or _was_in_vain(job.task):
            self.supersede(document)
            task = asyncio.create_task(self._work(document, request, load=load), name=f"fill {document}")
            job = self._jobs[document] = _Job(request=request, task=task)
        job.waiting += 1
        try:
            # Unlike awaiting the task, this tells its cancellation from our own.
            await asyncio.wait({job.task})
        finally:
            job.waiting -= 1
            if not job.waiting:
                job.task.cancel()
        return None if job.task.cancelled() else job.task.result()

    def supersede(self, document: str) -> None:
        """Cancel the work for a document."""
        self._newest.pop(document, None)
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
    """Running averages of the time between keys and of the time of an answer, in milliseconds of one clock."""

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
        """The model was stopped after this time, so an answer takes longer."""
        if self._answer_ms is None or after_ms > self._answer_ms:
            self._answer_ms = running_average(self._answer_ms, after_ms)

    def forget_answers(self) -> None:
        """Forget the time of answers: another engine answers from now on."""
        self._answer_ms = None

    def delay_ms(self, now_ms: float) -> float:
        """How long to wait before sending; 0 outside bursts, and where answers come faster than keys."""
        if self._gap_ms is None or self._answer_ms is None or self._answer_ms < self._gap_ms:
            return 0.0
        since_key_ms = now_ms - (self._last_key_ms or 0.0)
        return min(max(self._gap_ms * _MARGIN - since_key_ms, 0.0), self.max_delay_ms)
