"""Whether the engine lives while somebody waits for it: a process that was stopped or hangs keeps its socket open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from dg_lsp.backend.connection import EngineConnection, EngineFailure
from engine.ipc.messages import StatusQuery


async def watch(connection: EngineConnection, beat_s: float, silence_s: Callable[[], float]) -> bool:
    """Follow a connection for as long as somebody waits for answers; False where the engine says nothing any more.

    An engine that was silent for `beat_s` is asked for a sign of life, which its event loop gives whatever the model
    is at; `silence_s()` is how long that may take. Costs nothing while nobody waits.
    """
    while True:
        began_s = time.monotonic()
        await asyncio.sleep(beat_s)
        if connection.closed:
            return True
        if connection.heard_s < began_s:
            if not await _answers(connection, silence_s()):
                return False
        elif not connection.is_awaited:
            return True


async def _answers(connection: EngineConnection, timeout_s: float) -> bool:
    number = connection.next_id()
    try:
        async with asyncio.timeout(timeout_s):
            await connection.ask(number, StatusQuery(id=number))
    except TimeoutError:
        return False
    except EngineFailure:
        pass  # Lost or refused in the meantime: then it isn't wedged.
    return True
