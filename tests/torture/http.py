"""(e) Many clients ask by HTTP at once, in every way there is, and a third of them hang up.

Every other one gets its own answer; nothing is answered for those who hung up, and nothing of them is left: no fill, no
file, no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from dg_lsp.replay.report import percentile
from engine.common.messages import Done, Warm
from tests.engine.processes import WAIT_S, home, running, wait_until
from tests.torture.windows import pss_mib

CASES = 50
SLOW = "+".join(f"s{at}" for at in range(30))
GROWTH = 0.05
"""Of the memory from the second tenth of the requests to the last."""
IDLE = 300
"""More than may be open at once."""
FILES = 512
"""That an engine may hold: connections, windows, and what it works with."""
LEAST = 5_000
"""Requests from which on memory is judged; a young process still grows."""


class Caller:
    """One connection that stays open until it is hung up."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """Status and text."""
        reader = await self.begin(method, path, body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(head.split()[1])
        if "transfer-encoding: chunked" in head:
            text = b""
            while size := int(await reader.readline(), 16):
                text += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        else:
            text = await reader.readexactly(int(head.partition("content-length: ")[2].split()[0]))
        return status, text.decode()

    async def begin(self, method: str, path: str, body: object = None) -> asyncio.StreamReader:
        """Ask, and wait for nothing."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        sent = b"" if body is None else json.dumps(body).encode()
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(sent)}\r\n\r\n".encode())
        writer.write(sent)
        await writer.drain()
        return reader

    def hang_up(self) -> None:
        """As who closes an editor does."""
        if self._streams:
            self._streams[1].transport.abort()
            self._streams = None


class Crowd:
    """All callers, and what became of their requests."""

    def __init__(self, port: int, pid: int, count: int, seed: int) -> None:
        self._port = port
        self._process = psutil.Process(pid)
        self._count = count
        self._rng = random.Random(seed)
        self.asked = 0
        self.fills = 0
        self.hung_up = 0
        self.statuses: Counter[int] = Counter()
        self.wrong: list[str] = []
        self.ms: list[float] = []
        self.memory: list[float] = []
        self.own: list[float] = []
        self.files: list[int] = []

    async def call(self, until_s: float) -> None:
        """One caller after request until there were enough."""
        caller, rng = Caller(self._port), self._rng
        while self.asked < self._count and time.monotonic() < until_s:
            self.asked += 1
            if self.asked % (self._count // 10 or 1) == 0:
                self.memory.append(pss_mib(self._process.pid))
                self.own.append(own_mib(self._process))
                self.files.append(self._process.num_fds())
            try:
                async with asyncio.timeout(WAIT_S):
                    await (self._leave(caller) if rng.random() < 1 / 3 else self._ask(caller))
            except (OSError, EOFError, TimeoutError, ValueError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                caller.hang_up()
        caller.hang_up()

    async def _leave(self, caller: Caller) -> None:
        """Ask for what takes long, and hang up in the middle of it."""
        stream = self._rng.random() < 0.5
        path, body = self._rng.choice(
            [
                ("/infill", {"input_prefix": "slow = ", "input_suffix": "\n", "stream": stream}),
                ("/v1/completions", {"prompt": "slow = ", "suffix": "\n", "stream": stream}),
            ]
        )
        reader = await caller.begin("POST", path, body)
        self.hung_up += 1
        if stream and self._rng.random() < 0.3:
            self.statuses[int((await reader.readline()).split()[1])] += 1
        await asyncio.sleep(self._rng.uniform(0, 0.06))
        caller.hang_up()

    async def _ask(self, caller: Caller) -> None:
        at = self._rng.randrange(CASES)
        prefix, answer, suffix = case(at)
        stream = self._rng.random() < 0.3
        marked = f"<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"
        method, path, body, wanted = self._rng.choice(
            [
                *[("POST", "/infill", {"input_prefix": prefix, "input_suffix": suffix, "stream": stream}, answer)] * 4,
                *[("POST", "/v1/completions", {"prompt": prefix, "suffix": suffix, "stream": stream}, answer)] * 4,
                *[("POST", "/v1/completions", {"prompt": marked, "n": 2}, answer)] * 2,
                ("POST", "/infill", {"input_prefix": "", "input_suffix": "", "n_predict": 0}, ""),
                ("POST", "/infill", {"input_prefix": 3}, None),
                ("GET", "/v1/models", None, None),
                ("GET", "/health", None, None),
            ]
        )
        began = time.perf_counter()
        status, text = await caller.ask(method, path, body)
        self.ms.append((time.perf_counter() - began) * 1000)
        self.statuses[status] += 1
        self.fills += bool(wanted)
        if wanted is not None and (status, said(text)) != (200, wanted):
            self.wrong.append(f"{path} {status} {text[:200]!r} instead of {wanted!r}")


def own_mib(process: psutil.Process) -> float:
    """What of the proportional memory of a process and its children is no file's. The rest changes with what others
    load and leave: libraries are shared with every other process that has them, too."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        lines = Path(f"/proc/{each.pid}/smaps_rollup").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
    return total / 1024


def case(at: int) -> tuple[str, str, str]:
    """What is before a gap, in it and behind."""
    return f"def of_{at}(x):\n    return ", f"x + {at} * y_{at}", f"\n\nprint(of_{at}(3))\n"


def said(text: str) -> str:
    """The first answer in a body, streamed or not."""
    lines = [line for line in text.removeprefix("data: ").split("\n\ndata: ") if line.startswith("{")]
    held = [json.loads(line) for line in lines]
    return "".join(each["choices"][0]["text"] if "choices" in each else each.get("content", "") for each in held)


@asynccontextmanager
async def idle(port: int, count: int) -> AsyncIterator[None]:
    """So many connections, beside all that is asked, that never ask for anything; one that is closed is made anew."""

    async def wait_for_ever() -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"POST /infill HTTP/1.1\r\nHost: lo")
                await reader.read()
                writer.transport.abort()
            await asyncio.sleep(1)

    waiting = [asyncio.create_task(wait_for_ever()) for _ in range(count)]
    try:
        yield
    finally:
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def http(count: int, at_once: int, seconds: float, seed: int = 0) -> dict[str, Any]:
    """So many requests, or as many as `seconds` allow."""
    with home() as place:
        slow = {"text": f"slow = ▮{SLOW}▮\n", "reveal": 1, "delay_ms": 5}
        model = place.oracle(slow, *("▮".join(case(at)) for at in range(CASES)))
        with running(place, "--model", model, "--device", "cpu", "--http", "127.0.0.1:0") as process:
            with place.client() as wire:
                wire.send(Warm(id=1))
                assert wire.reply(1) == Done(id=1)
                port = int(wire.status().http.rpartition(":")[2])
            crowd = Crowd(port, process.pid, count, seed)
            since_s = time.monotonic()
            async with asyncio.TaskGroup() as group, idle(port, IDLE):
                for _ in range(at_once):
                    group.create_task(crowd.call(since_s + seconds))
            took_s = time.monotonic() - since_s
            with place.client() as wire:
                await asyncio.to_thread(
                    wait_until, lambda: wire.status().running + wire.status().queued == 0, "the work to end"
                )
                status = wire.status()
            logged = [line for line in place.log().splitlines() if " ERROR " in line or "Traceback" in line]
    grew = crowd.own[-1] / crowd.own[1] - 1 if len(crowd.own) > 2 else 0.0
    return {
        "part": "http",
        "requests": crowd.asked,
        "hung_up": crowd.hung_up,
        "statuses": {str(code): number for code, number in sorted(crowd.statuses.items())},
        "fills": crowd.fills,
        "served": status.served,
        "failed": status.failed,
        "wrong": crowd.wrong[:5],
        "logged": logged[:5],
        "seconds": round(took_s, 1),
        "ms": [round(percentile(crowd.ms, percent) or 0, 1) for percent in (50, 95, 100)],
        "pss_mib": [round(each, 1) for each in crowd.memory],
        "own_mib": [round(each, 1) for each in crowd.own],
        "open_files": crowd.files,
        "grew": round(grew, 4),
        "passed": not (crowd.wrong or logged)
        and crowd.asked == count
        and status.served == crowd.fills
        and max(crowd.files, default=0) <= FILES
        and set(status.failed) <= {"cancelled"}
        and (count < LEAST or grew <= GROWTH),
    }
