"""Whether the engine lives while somebody waits for it: a process that was stopped or hangs keeps its socket open.

One rule for all windows and whatever the engine is at: it answers, or it makes progress, or it is replaced.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dg_lsp.backend.timeouts import Timeouts
from engine.core.errors import EngineError
from engine.ipc.peercred import Peer, is_stopped, work_done

T = TypeVar("T")


class EngineSilent(EngineError):
    """An engine said nothing for longer than it may. `peer` is its process, where known."""

    def __init__(self, peer: Peer | None) -> None:
        super().__init__("The engine accepts connections but does not answer.")
        self.peer = peer


async def answer_or_silence(answer: Awaitable[T], peer: Callable[[], Peer | None], timeouts: Timeouts) -> T:
    """What `answer` comes to. Raises what it raises, and EngineSilent where `peer` neither gives it nor works on it."""
    task = asyncio.ensure_future(answer)
    began_s = moved_s = time.monotonic()
    done = work_done(peer())
    try:
        while not (await asyncio.wait({task}, timeout=min(timeouts.look_s, timeouts.idle_s / 4)))[0]:
            who = peer()
            now_s, before, done = time.monotonic(), done, work_done(who)
            if done != before:
                moved_s = now_s
            still_s = timeouts.stopped_s if is_stopped(who) else timeouts.idle_s
            if now_s - moved_s >= still_s or now_s - began_s >= timeouts.busy_s:
                raise EngineSilent(who)
        return task.result()
    finally:
        task.cancel()
