"""When an engine counts as silent, with real processes."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from dg_lsp.backend.connection import EngineSilent, answer_or_silence
from dg_lsp.backend.timeouts import Timeouts
from engine.common.peercred import Peer
from tests.engine.processes import WAIT_S

PATIENT = Timeouts(idle_s=10 * WAIT_S, busy_s=10 * WAIT_S)


@asynccontextmanager
async def at_rest() -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that waits for something that never comes."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        await process.communicate()


async def waited(process: asyncio.subprocess.Process, timeouts: Timeouts, timeout_s: float = WAIT_S) -> None:
    answer = asyncio.get_running_loop().create_future()
    peer = Peer(is_own=True, pid=process.pid)
    async with asyncio.timeout(timeout_s):
        await answer_or_silence(_result(answer), lambda: peer, replace(timeouts, look_s=0.05))


async def _result(answer: asyncio.Future[None]) -> None:
    await answer


@pytest.mark.skipif(sys.platform == "win32", reason="no process is stopped there")
@pytest.mark.asyncio
async def test_a_stopped_process_is_known_to_be_silent():
    async with at_rest() as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(EngineSilent):
            await waited(process, PATIENT)


@pytest.mark.asyncio
async def test_one_that_only_does_nothing_is_given_its_time():
    async with at_rest() as process:
        with pytest.raises(TimeoutError):
            await waited(process, PATIENT, 2.0)
        with pytest.raises(EngineSilent):
            await waited(process, Timeouts(idle_s=0.2, busy_s=10 * WAIT_S))
