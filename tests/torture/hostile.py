"""(d) Hostile documents are typed into one window; how does an innocent one fare beside it?"""

from __future__ import annotations

import asyncio
import itertools
import math
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from dg_lsp.replay.connection import ServerConnection
from dg_lsp.replay.report import percentile
from engine.syntax.languages import GRAMMARS
from tests.engine.processes import home
from tests.torture.windows import Figures, Typist, complaints, oracle, ready, window

TIMES = 3.0
"""The innocent window's p99, to what it is alone, at most."""
KEYS = 12
"""Typed into each hostile document."""


def documents() -> Iterator[tuple[str, str, str]]:
    """(path, language, text): deep, long, repeated, never closed."""
    shapes = {
        "deep brackets": "(" * 4000,
        "deep mixed": "([{" * 2000,
        "closers": "a)\n" * 8000,
        "dashes": "- " * 254,
        "percent": "%w(" * 20_000,
        "pattern": "x=/[[" * 5000,
        "quotes": "'\"`" * 5000,
        "one line": "a+" * 200_000,
        "indented": "\n".join(" " * (depth % 400) + "if a:" for depth in range(4000)),
        "templates": "${`" * 4000,
        "comments": "/*" * 20_000,
        "tags": "<a>" * 8000,
    }
    for grammar in GRAMMARS.values():
        ending = min(grammar.extensions.split(), key=lambda each: (len(each), each))
        for name, text in shapes.items():
            yield f"{name.replace(' ', '-')}.{ending}", grammar.name, text


async def hostile(seconds: float, keys: int, seed: int = 0) -> dict[str, Any]:
    """Type into every hostile document, over and over, beside `keys` innocent keys, or as many as `seconds` allow."""
    with home() as place, tempfile.TemporaryFile() as stderr:
        model = oracle(place)
        async with window(place, model, stderr) as victim, window(place, model, stderr) as attacker:
            await ready(victim)
            await ready(attacker)
            alone = await _typed(victim, keys, seed, seconds / 3)
            done = asyncio.Event()
            attack = asyncio.create_task(_attack(attacker, done))
            beside = await _typed(victim, keys, seed, 2 * seconds / 3)
            done.set()
            tried = await attack
            again = Typist(victim, seed + 2)
            await again.type(200)
        said = [line for line in complaints(place, stderr) if "Traceback" in line]
    before, during = (percentile(each.ms, 99) or math.nan for each in (alone, beside))
    return {
        "part": "hostile documents",
        "documents": tried,
        "innocent_keys": [alone.keys, beside.keys],
        "p99_ms": [round(before, 1), round(during, 1)],
        "times": round(during / before, 2),
        "errors": [*alone.errors, *beside.errors][:5],
        "wrong_documents": [*alone.wrong, *beside.wrong][:5],
        "suggestions_afterwards": again.figures.suggestions,
        "logged": said[:5],
        "passed": during <= TIMES * before
        and not (alone.errors or beside.errors or alone.wrong or beside.wrong or said)
        and again.figures.suggestions > 0,
    }


async def _typed(wire: ServerConnection, keys: int, seed: int, seconds: float) -> Figures:
    typist = Typist(wire, seed)
    await typist.type(keys, time.monotonic() + seconds)
    return typist.figures


async def _attack(wire: ServerConnection, done: asyncio.Event) -> int:
    """Type into every document, over and over, until the innocent window is done; how many were typed into."""
    typist = Typist(wire, 1)
    tried = 0
    for path, language, text in itertools.cycle(documents()):
        if done.is_set():
            break
        tried += 1
        typist.editor.open(path, language, text, len(text) // 2)
        for key in "x(1, y) + z[2]"[:KEYS]:
            typist.editor.type(key)
            asked = typist.editor.ask()
            # A person does not wait for an answer that does not come.
            await asyncio.wait({asked.answer}, timeout=0.3)
        typist.editor.close()
    return tried
