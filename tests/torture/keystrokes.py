"""(a) Many keys in two windows: nothing stale, no document out of step, nothing logged, memory flat."""

from __future__ import annotations

import asyncio
import tempfile
import time
from typing import Any

from dg_lsp.replay.report import percentile
from tests.engine.processes import home
from tests.torture.windows import Typist, complaints, oracle, pss_mib, ready, window

LOOKS = 40
"""Times that memory is looked at."""
FLAT = 1.05
"""Memory of the last tenth of a run, to that of its second tenth."""


async def keystrokes(keys: int, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Type `keys` keys, or as many as `seconds` allow, half of them in each of two windows."""
    with home() as place, tempfile.TemporaryFile() as stderr:
        model = oracle(place)
        async with window(place, model, stderr) as first, window(place, model, stderr) as second:
            pids = [await ready(first), await ready(second), first.process.pid, second.process.pid]
            # To start takes long on a busy machine, and is not what is measured.
            until_s = time.monotonic() + seconds
            typists = [Typist(first, seed), Typist(second, seed + 1)]
            memory: list[float] = []
            for _ in range(LOOKS):
                await asyncio.gather(*(typist.type(keys // (2 * LOOKS), until_s) for typist in typists))
                memory.append(pss_mib(*dict.fromkeys(pids)))
                if time.monotonic() >= until_s:
                    break
        said = complaints(place, stderr)
    tenth = max(1, len(memory) // 10)
    early, late = memory[tenth : 2 * tenth] or memory[:1], memory[-tenth:]
    ms = sorted(each for typist in typists for each in typist.figures.ms)
    figures = [typist.figures for typist in typists]
    growth = (sum(late) / len(late)) / (sum(early) / len(early))
    told: dict[str, Any] = {
        "part": "keystrokes",
        "keys": sum(each.keys for each in figures),
        "answers": sum(each.answers for each in figures),
        "suggestions": sum(each.suggestions for each in figures),
        "stale": sum(each.stale for each in figures),
        "wrong_documents": [line for each in figures for line in each.wrong][:5],
        "compared": sum(each.compared for each in figures),
        "errors": [error for each in figures for error in each.errors][:5],
        "logged": said[:5],
        "pss_mib": [round(memory[0]), round(memory[-1])],
        "growth": round(growth, 3),
        "p50_ms": percentile(ms, 50),
        "p99_ms": percentile(ms, 99),
    }
    # A run that is over before memory has settled says nothing about it.
    flat = growth <= FLAT or told["keys"] < 20_000
    clean = not (told["stale"] or told["wrong_documents"] or told["errors"] or said)
    return told | {"passed": clean and flat and told["suggestions"] > 0}
