"""(b) The engine is killed and stopped at random moments: every later request is served, and one is lost at most."""

from __future__ import annotations

import asyncio
import random
import signal
import tempfile
import time
from typing import Any

import psutil

from dg_lsp.replay.report import percentile
from tests.engine.processes import home
from tests.torture.windows import CODE, Typist, complaints, oracle, ready, window

BACK_S = 60.0
"""For suggestions to come back."""


async def kills(count: int, stops: int, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Kill the engine `count` times and stop it `stops` times while somebody types, or as often as `seconds` allow."""
    rng, until_s = random.Random(seed), time.monotonic() + seconds
    back_ms: dict[str, list[float]] = {"SIGKILL": [], "SIGSTOP": []}
    plan = [signal.SIGKILL] * count + [signal.SIGSTOP] * stops
    rng.shuffle(plan)
    unserved = struck = 0
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
                struck += 1
                served = await _served(typist, struck)
                unserved += not served
                back_ms[number.name].append((time.monotonic() - struck_s) * 1000)
        said = [line for line in complaints(place, stderr) if "Traceback" in line]
    figures = typist.figures
    return {
        "part": "kills",
        "killed": len(back_ms["SIGKILL"]),
        "stopped": len(back_ms["SIGSTOP"]),
        "never_served_again": unserved,
        "errors": figures.errors[:5],
        "wrong_documents": figures.wrong[:5],
        "logged": said[:5],
        "back_ms": {
            name: [round(percentile(ms, percent) or 0) for percent in (50, 100)] for name, ms in back_ms.items() if ms
        },
        "passed": not (unserved or figures.errors or figures.wrong or said),
    }


async def _served(typist: Typist, struck: int) -> bool:
    """Whether a suggestion comes again where one must, and where none has come before: the server remembers some."""
    path = next(path for path in CODE if path.suffix == ".py")
    text = path.read_text()
    text = f"# {struck}\n{text[: len(text) // 2]}"
    typist.editor.open("again.py", "python", text, len(text))
    ends_s = time.monotonic() + BACK_S
    try:
        while time.monotonic() < ends_s:
            if await typist.ghosts():
                return True
            await asyncio.sleep(0.05)
        return False
    finally:
        typist.editor.close()
