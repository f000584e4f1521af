"""Looks at the files of projects, which may lie on a disk that does not answer, away from the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 1.0
"""How long what a look found is new."""
LOOK_S = 2.0
"""For one look; who waits for it goes on then with what was known before."""
TRUSTED_S = 5.0
"""How long what a look found may be gone by while there is no newer one."""
SOON_S = 0.03
"""By then most keys are answered; a look beside them, in the same interpreter, holds them up."""
AT_ONCE = 2


class Looking:
    """Calls `look(uri)` in threads that nobody waits for at the end, again and again as somebody asks.

    `looked(uri)` is told on the event loop, before anybody who waits goes on.
    """

    def __init__(
        self,
        look: Callable[[str], None],
        looked: Callable[[str], None] = lambda uri: None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._looked = looked
        self._clock_s = clock_s
        self._looked_at_s: dict[str, float] = {}
        self._turns = threading.Semaphore(AT_ONCE)
        self._under_way: dict[str, tuple[float, asyncio.Future[None]]] = {}

    def is_fresh(self, uri: str) -> bool:
        return self._age_s(uri) < LOOK_AGAIN_S

    def is_trusted(self, uri: str) -> bool:
        """Whether what the last look found may be gone by."""
        return self._age_s(uri) < TRUSTED_S

    async def at(self, uri: str) -> None:
        """Look, unless that was done a moment ago; what takes too long is no longer waited for, now or later."""
        if self.is_fresh(uri):
            return
        begun_s, done = self._under_way.get(uri) or self._begin(uri)
        left_s = begun_s + LOOK_S - self._clock_s()
        if left_s > 0:
            await asyncio.wait({done}, timeout=left_s)

    def forget(self, uri: str) -> None:
        """Look anew when asked next; a look under way may have come too early."""
        self._looked_at_s.pop(uri, None)
        self._under_way.pop(uri, None)

    def _age_s(self, uri: str) -> float:
        return self._clock_s() - self._looked_at_s.get(uri, -math.inf)

    def _begin(self, uri: str) -> tuple[float, asyncio.Future[None]]:
        loop = asyncio.get_running_loop()
        job = self._under_way[uri] = self._clock_s(), loop.create_future()

        def finish() -> None:
            if self._under_way.get(uri) is job:
                self._looked_at_s[uri] = self._clock_s()
                del self._under_way[uri]
            try:
                self._looked(uri)
            finally:
                if not job[1].done():
                    job[1].set_result(None)

        def work() -> None:
            # Many at once would take the interpreter from the event loop; one that hangs has its turn for a while only.
            has_turn = self._turns.acquire(timeout=LOOK_S)
            try:
                self._look(uri)
            except Exception:  # whatever a file system comes up with
                log.exception("The project of a document could not be looked at.")
            finally:
                if has_turn:
                    self._turns.release()
            with contextlib.suppress(RuntimeError):  # The loop is over.
                loop.call_soon_threadsafe(finish)

        threading.Thread(target=work, name="look at files", daemon=True).start()
        return job
