"""Whether the engine lives while somebody waits for it: a process that was stopped or hangs keeps its socket open.

One rule for all windows and whatever the engine is at: it answers, or it makes progress, or it is replaced.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from engine.ipc.peercred import Peer, is_stopped, work_done

T = TypeVar("T")
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """How long an engine that is asked for a sign of life may say nothing, in seconds."""

    stopped_s: float = 0.5
    """While its process is stopped (SIGSTOP, or a terminal's Ctrl-Z); it can't do anything."""
    idle_s: float = 3.0
    """While its process does nothing, either; an answer would cost it some work."""
    busy_s: float = 60.0
    """In all: to import what a model needs may hold up the whole process."""


class EngineSilent(Exception):
    """An engine said nothing for longer than it may."""


async def answer_or_silence(
    answer: Awaitable[T], peer: Callable[[], Peer | None], silence: Silence, look_s: float = _LOOK_S
) -> T:
    """What `answer` comes to. Raises what it raises, and EngineSilent where `peer` neither gives it nor works on it."""
    task = asyncio.ensure_future(answer)
    began_s = moved_s = time.monotonic()
    done = work_done(peer())
    try:
        while not (await asyncio.wait({task}, timeout=min(look_s, silence.idle_s / 4)))[0]:
            who = peer()
            now_s, before, done = time.monotonic(), done, work_done(who)
            if done != before:
                moved_s = now_s
            still_s = silence.stopped_s if is_stopped(who) else silence.idle_s
            if now_s - moved_s >= still_s or now_s - began_s >= silence.busy_s:
                raise EngineSilent
        return task.result()
    finally:
        task.cancel()
