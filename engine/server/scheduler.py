"""Who is served next. Pure policy after one lock: the event loop submits, the model thread asks for rounds.

In a round, each job chosen advances by one denoising step, all of them in one forward pass. Between rounds anything may
change: newer requests supersede, clients cancel or vanish, interactive work pushes background work aside.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.common.messages import EngineMessage, Failed, FailureCode, Fill, Priority, Warm
from engine.server.settings import Limits
from engine.syntax.questions import Reply

if TYPE_CHECKING:
    # Only for the checker: the process answers clients before torch is imported.
    from engine.fill.executor import Filling, Step
    from engine.models.base import Model


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A fill, or a request to load the weights. Only the scheduler changes it, and what is the model thread's, that."""

    client: int
    order: Fill | Warm
    deliver: Callable[[EngineMessage], None]
    """May be called on any thread."""
    arrived: float
    """Seconds, monotonic."""
    touched: float
    """When it last got a turn, or arrived."""
    rows: int = 0
    """Canvases in its next forward pass, or the most there may be."""
    started: bool = False
    ended: bool = False
    """Its reply is out; nobody wants its result."""
    retried: bool = False
    """It ran out of memory and began again."""
    model: Model | None = None
    """What its folder is served by; None: it has not begun, or has ended. Of the model thread, as the next two."""
    filling: Filling | None = None
    """What does its work."""
    step: Step | None = None
    """The forward pass it waits for."""
    checking: bool = False
    """It waits for the reply to a question about its document; nobody gives it a turn."""
    reply: Reply | None = None
    """The latest reply, for its next turn."""

    @classmethod
    def of(
        cls, client: int, order: Fill | Warm, deliver: Callable[[EngineMessage], None], arrived: float | None = None
    ) -> Self:
        """What a client asks for, now or when it `arrived`."""
        now = time.monotonic()
        rows = order.request.n if isinstance(order, Fill) else 0
        came = now if arrived is None else arrived
        return cls(client=client, order=order, deliver=deliver, arrived=came, touched=now, rows=rows)

    @property
    def id(self) -> int:
        """The client's number for it."""
        return self.order.id

    @property
    def document(self) -> str:
        """A newer job for the same document supersedes this one; empty: none does."""
        return self.order.document if isinstance(self.order, Fill) else ""

    @property
    def priority(self) -> Priority:
        """A load comes first: somebody is about to send a request."""
        return self.order.priority if isinstance(self.order, Fill) else "interactive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What the model thread does next."""

    jobs: tuple[Job, ...]
    abandoned: tuple[Job, ...]
    """Started jobs that ended from outside; their generators must be closed by the thread that runs them."""
    closed: bool
    """The scheduler takes no more work."""
    idle: bool
    """Nothing is under way or waits."""


class Scheduler:
    """All methods may be called on any thread; replies are delivered outside the lock."""

    def __init__(self, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._abandoned: list[Job] = []
        self._last_turn: Counter[int] = Counter()
        self._turn = 0
        self._closed = False
        self._failures: Counter[FailureCode] = Counter()

    def submit(self, job: Job) -> None:
        """Take a job in, or answer it at once: "busy", "bad_request" for an id in use, "stopping"."""
        with self._changed:
            older = [other for other in self._jobs_of(job.client) if job.document and other.document == job.document]
            refusal = self._refusal(job, superseding=len(older))
            if refusal is None:
                self._remove(older)
                self._jobs.append(job)
                self._changed.notify()
        if refusal:
            self._deliver([job], *refusal)
        else:
            self._deliver(older, "superseded", "A newer request for the same document came.")

    def cancel(self, client: int, id: int) -> None:
        """End the client's job of that id, if there is one."""
        self._end_where(lambda job: job.client == client and job.id == id, "cancelled", "The request was cancelled.")

    def drop(self, client: int) -> None:
        """Forget a client that has gone, and its work."""
        self._end_where(lambda job: job.client == client, "cancelled", "The client has gone.")
        with self._changed:
            del self._last_turn[client]

    def fail_all(self, code: FailureCode, message: str) -> None:
        """End all jobs with an error."""
        self._end_where(lambda _: True, code, message)

    def close(self) -> None:
        """Take no more work and let the model thread end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self.fail_all("stopping", "The engine is stopping.")

    def counts(self) -> tuple[int, int]:
        """The number of jobs that wait for their first turn, and of those under way."""
        with self._changed:
            running = sum(job.started for job in self._jobs)
            return len(self._jobs) - running, running

    def failures(self) -> dict[str, int]:
        """The number of failed jobs by code."""
        with self._changed:
            return {code: count for code, count in self._failures.items() if count}

    def next_round(self, timeout_s: float) -> Round:
        """Wait for work, at most so long, and choose the jobs of the next round."""
        with self._changed:
            self._changed.wait_for(lambda: self._ready() or self._abandoned or self._closed, timeout_s)
            abandoned, self._abandoned = tuple(self._abandoned), []
            jobs = tuple(self._choose())
            return Round(jobs=jobs, abandoned=abandoned, closed=self._closed, idle=not self._jobs)

    def await_reply(self, job: Job) -> None:
        """Give a job no turn until `replied`."""
        with self._changed:
            job.checking = True

    def replied(self, job: Job, reply: Reply | None) -> None:
        """A job's reply has come."""
        with self._changed:
            job.reply, job.checking = reply, False
            self._changed.notify()

    def finish(self, job: Job, message: EngineMessage) -> bool:
        """Reply to a job of the round unless it ended meanwhile; returns whether this was its reply."""
        with self._changed:
            job.filling = job.step = job.model = None
            if job.ended:
                return False
            job.ended = True
            self._jobs.remove(job)
            if isinstance(message, Failed):
                self._failures[message.code] += 1
        job.deliver(message)
        return True

    def _choose(self) -> list[Job]:
        """By turns among the clients, oldest jobs first, until the forward pass is full."""
        chosen: list[Job] = []
        rows = 0
        for job in self._in_turn(self._eligible()):
            if chosen and rows + job.rows > self._limits.rows:
                break
            chosen.append(job)
            rows += job.rows
        for job in chosen:
            self._turn += 1
            job.started = True
            job.touched = self._clock()
            self._last_turn[job.client] = self._turn
        return chosen

    def _ready(self) -> list[Job]:
        return [job for job in self._jobs if not job.checking]

    def _eligible(self) -> list[Job]:
        ready = self._ready()
        if not any(job.priority == "interactive" for job in ready):
            return ready
        starving = self._clock() - self._limits.starved_after_s
        return [job for job in ready if job.priority == "interactive" or job.touched < starving]

    def _in_turn(self, jobs: Iterable[Job]) -> list[Job]:
        place: Counter[int] = Counter()
        keys: dict[Job, tuple[int, int, float]] = {}
        for job in jobs:
            keys[job] = (place[job.client], self._last_turn[job.client], job.arrived)
            place[job.client] += 1
        return sorted(keys, key=lambda job: keys[job])

    def _refusal(self, job: Job, superseding: int) -> tuple[FailureCode, str] | None:
        own = self._jobs_of(job.client)
        if self._closed:
            return "stopping", "The engine is stopping."
        if any(other.id == job.id for other in own):
            return id_in_use(job.id)
        if len(own) - superseding >= self._limits.jobs_per_client or len(self._jobs) - superseding >= self._limits.jobs:
            return "busy", "The engine is busy: too many requests are waiting; try again in a moment."
        return None

    def _jobs_of(self, client: int) -> list[Job]:
        return [job for job in self._jobs if job.client == client]

    def _end_where(self, matches: Callable[[Job], bool], code: FailureCode, message: str) -> None:
        with self._changed:
            ending = [job for job in self._jobs if matches(job)]
            self._remove(ending)
        self._deliver(ending, code, message)

    def _remove(self, ending: list[Job]) -> None:
        for job in ending:
            job.ended = True
            self._jobs.remove(job)
        self._abandoned += [job for job in ending if job.started]
        self._changed.notify()

    def _deliver(self, jobs: list[Job], code: FailureCode, message: str) -> None:
        with self._changed:
            self._failures[code] += len(jobs)
        for job in jobs:
            job.deliver(Failed(id=job.id, code=code, message=message))


def id_in_use(id: int) -> tuple[FailureCode, str]:
    """Why a client's second request of one id is refused."""
    return "bad_request", f"The id {id} is in use by a request that is not answered yet."
