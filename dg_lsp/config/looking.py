"""Looks at project files in threads, since their disk may not answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dg_lsp.config.exclusion import Seen

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0
"""How long a look counts as fresh."""
LOOK_S = 2.0
"""Time limit of one look; then waiters continue with what was known before."""
TRUSTED_S = 5.0
"""How long a look's findings may be used while no newer look is done."""
SOON_S = 0.03
"""Delay of a look after a key: a look at the same time would slow down the answer."""
AT_ONCE = 2
"""Number of threads, hung ones not counted."""
TELL_AGAIN_S = 0.01
"""Interval in which the event loop hears of findings."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Look:
    """A look that is running or queued."""

    uri: str
    requested_s: float
    done: asyncio.Future[None]


@dataclass(slots=True, eq=False)
class _Worker:
    """A thread: the rest of its batch, and when its current look started."""

    batch: deque[_Look] = field(default_factory=deque)
    begun_s: float = field(default_factory=time.monotonic)
    seen: Seen = field(default_factory=Seen)
    seen_since_s: float = -math.inf


class Looking:
    """Calls `look(uri, seen)` in threads, which are not joined at exit. Files that are requested together are looked at
    one after another and share `seen`.

    `looked(uri)` is called on the event loop, before waiters continue.
    """

    def __init__(
        self,
        look: Callable[[str, Seen], None],
        looked: Callable[[str], None] = lambda uri: None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._looked = looked
        self._clock_s = clock_s
        self._looked_at_s: dict[str, float] = {}
        self._under_way: dict[str, _Look] = {}
        self._lock = threading.Lock()
        """For the attributes below, which threads share."""
        self._queue = deque[deque[_Look]]()
        self._workers = set[_Worker]()
        self._found = list[_Look]()
        self._is_telling = False
        self._forgot_s = -math.inf
        """When something was forgotten last; `seen` from before is not used after it."""

    def is_fresh(self, uri: str) -> bool:
        return self._age_s(uri) < LOOK_AGAIN_S

    def is_trusted(self, uri: str) -> bool:
        """Whether the last look's findings may be used."""
        return self._age_s(uri) < TRUSTED_S

    async def at(self, *uris: str) -> None:
        """Look at files, except fresh ones; wait `LOOK_S` at most."""
        stale = [uri for uri in dict.fromkeys(uris) if not self.is_fresh(uri)]
        self._begin([uri for uri in stale if uri not in self._under_way])
        for look in [self._under_way[uri] for uri in stale]:
            left_s = look.requested_s + LOOK_S - self._clock_s()
            if left_s > 0 and not look.done.done():
                await asyncio.wait({look.done}, timeout=left_s)

    def forget(self, uri: str) -> None:
        """Look again at the next request; a running look may have come too early."""
        self._looked_at_s.pop(uri, None)
        self._under_way.pop(uri, None)
        with self._lock:
            self._forgot_s = time.monotonic()

    def _age_s(self, uri: str) -> float:
        return self._clock_s() - self._looked_at_s.get(uri, -math.inf)

    def _begin(self, uris: Sequence[str]) -> None:
        loop, now_s = asyncio.get_running_loop(), self._clock_s()
        batch = deque(_Look(uri=uri, requested_s=now_s, done=loop.create_future()) for uri in uris)
        if batch:
            self._under_way |= {look.uri: look for look in batch}
            self._enqueue(batch)

    def _enqueue(self, batch: deque[_Look]) -> None:
        with self._lock:
            self._queue.append(batch)
            # Many at once would take the interpreter from the event loop.
            if len(self._workers) >= AT_ONCE:
                return
            worker = _Worker()
            self._workers.add(worker)
        loop = asyncio.get_running_loop()
        loop.call_later(LOOK_S, self._replace_if_hung, worker)
        threading.Thread(target=self._work, args=(worker, loop), name="look at files", daemon=True).start()

    def _replace_if_hung(self, worker: _Worker) -> None:
        """Give the batch of a hung thread to another one; the hung one ends as soon as it can."""
        with self._lock:
            if worker not in self._workers:
                return
            left_s = worker.begun_s + LOOK_S - time.monotonic()
            if left_s <= 0:
                self._workers.remove(worker)
        if left_s > 0:
            asyncio.get_running_loop().call_later(left_s, self._replace_if_hung, worker)
        else:
            self._enqueue(worker.batch)

    def _work(self, worker: _Worker, loop: asyncio.AbstractEventLoop) -> None:
        while look := self._next(worker):
            try:
                self._look(look.uri, worker.seen)
            except Exception:  # whatever a file system comes up with
                log.exception("The project of a document could not be looked at.")
            with self._lock:
                self._found.append(look)
                tells, self._is_telling = not self._is_telling, True
            if tells:
                with contextlib.suppress(RuntimeError):  # The loop is over.
                    loop.call_soon_threadsafe(self._tell)

    def _next(self, worker: _Worker) -> _Look | None:
        """A worker's next look; None where nothing is left, or the worker was replaced."""
        with self._lock:
            if worker not in self._workers:
                return None
            worker.begun_s = time.monotonic()
            if not worker.batch or worker.seen_since_s <= max(self._forgot_s, worker.begun_s - LOOK_AGAIN_S):
                worker.seen, worker.seen_since_s = Seen(), worker.begun_s
            while not worker.batch and self._queue:
                worker.batch = self._queue.popleft()
            if not worker.batch:
                self._workers.remove(worker)
                return None
            return worker.batch.popleft()

    def _tell(self) -> None:
        """On the event loop: take all findings so far, and soon the next ones together."""
        with self._lock:
            found, self._found = self._found, []
            self._is_telling = bool(found)
        if found:
            asyncio.get_running_loop().call_later(TELL_AGAIN_S, self._tell)
        for look in found:
            self._finish(look)

    def _finish(self, look: _Look) -> None:
        if self._under_way.get(look.uri) is look:
            self._looked_at_s[look.uri] = self._clock_s()
            del self._under_way[look.uri]
        try:
            self._looked(look.uri)
        except Exception:  # whatever it is, others were found with it
            log.exception("What was found of a document's project could not be taken in.")
        finally:
            if not look.done.done():
                look.done.set_result(None)
