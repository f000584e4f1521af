"""(b) The engine is killed and stopped at random moments: every later request is served, and one is lost at most.

Keys that come while an engine starts are answered with nothing at once, as typing must not wait; what is asked for
explicitly waits for the engine. Lost is an explicit request that comes back with nothing though there is an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import socket
import tempfile
import time
from typing import Any

import psutil

from dg_lsp.replay.report import percentile
from tests.engine.processes import Home, home
from tests.torture.windows import CODE, Typist, complaints, oracle, ready, window

BACK_S = 60.0
"""For suggestions to come back."""


async def kills(count: int, stops: int, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Kill the engine `count` times and stop it `stops` times while somebody types, or as often as `seconds` allow."""
    rng, until_s = random.Random(seed), time.monotonic() + seconds
    back_ms: dict[str, list[float]] = {"SIGKILL": [], "SIGSTOP": []}
    plan = [signal.SIGKILL] * count + [signal.SIGSTOP] * stops
    rng.shuffle(plan)
    lost: list[int] = []
    with home() as place, tempfile.TemporaryFile() as stderr:
        async with window(place, oracle(place), stderr) as wire:
            typist = Typist(wire, seed)
            for number in plan:
                if time.monotonic() >= until_s:
                    break
                pid = await ready(wire)
                typing = asyncio.create_task(typist.type(10**6, time.monotonic() + rng.uniform(0.1, 0.6)))
                await asyncio.sleep(rng.uniform(0.0, 0.5))
                psutil.Process(pid).send_signal(number)
                struck_s = time.monotonic()
                await typing
                lost.append(await _lost(typist, len(lost)))
                back_ms[number.name].append((time.monotonic() - struck_s) * 1000)
            psutil.Process(await ready(wire)).send_signal(signal.SIGSTOP)
            unhelpful = await _in_the_way(place)
        said = [line for line in complaints(place, stderr) if "Traceback" in line]
    figures = typist.figures
    return {
        "part": "kills",
        "killed": len(back_ms["SIGKILL"]),
        "stopped": len(back_ms["SIGSTOP"]),
        "lost_each_time": {str(count): lost.count(count) for count in sorted(set(lost))},
        "errors": figures.errors[:5],
        "wrong_documents": figures.wrong[:5],
        "logged": said[:5],
        "unhelpful": unhelpful,
        "back_ms": {
            name: [round(percentile(ms, percent) or 0) for percent in (50, 100)] for name, ms in back_ms.items() if ms
        },
        "passed": max(lost, default=0) <= 1 and not (figures.errors or figures.wrong or said or unhelpful),
    }


async def _in_the_way(place: Home) -> list[str]:
    """What commands say to an engine that is stopped, while as many wait for it as can: each names the way out, and the
    last one takes it."""
    loop = asyncio.get_running_loop()
    wrong = list[str]()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock = stack.enter_context(socket.socket(socket.AF_UNIX))
                sock.setblocking(False)
                sock.connect(str(place.socket_path))
        for command, told in (("status", "`dg-lsp engine restart`"), ("restart", "The engine runs.")):
            done = await loop.run_in_executor(None, place.command, command)
            if told not in done.stdout + done.stderr:
                wrong.append(f"{command}: {done.stdout}{done.stderr}")
    return wrong


async def _lost(typist: Typist, struck: int) -> int:
    """How many requests come back with nothing before the first that is served, where an answer is known and none was
    given before: the server remembers some."""
    path = next(path for path in CODE if path.suffix == ".py")
    text = path.read_text()
    text = f"# {struck}\n{text[: len(text) // 2]}"
    typist.editor.open("again.py", "python", text, len(text))
    ends_s = time.monotonic() + BACK_S
    lost = 0
    try:
        while not await typist.ghosts() and time.monotonic() < ends_s:
            lost += 1
        return lost
    finally:
        typist.editor.close()
