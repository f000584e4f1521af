"""The bundled model behind a real server: what comes is for the model to know, that it comes and is sound is ours."""

from __future__ import annotations

import ast
import asyncio
import os
import warnings
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from tests.e2e.window import Window, until, window
from tests.engine.processes import home

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEIGHTS = Path(__file__).parents[2] / "engine" / "weights" / "bundled" / "model.safetensors"
PATIENT = {"inline": {"threshold": 0, "deadline_ms": 60_000}}
GAPS = (
    "def add(a, b):\n    return ▮\n\n\nprint(add(1, 2))\n",
    "import os\n\nfor name in os.listdir(▮):\n    print(name)\n",
    "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        ▮\n\n    def move(self):\n        pass\n",
    "def read(path):\n    with open(path) as file:\n        ▮\n",
    "try:\n    import json\nexcept ▮:\n    json = None\n",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def held():
    with home() as place:
        async with window(place, "neovim", options=PATIENT, model="bundled") as opened:
            yield opened


async def test_the_status_shows_the_model(held: Window):
    told = await held.status(engine=True)
    assert told["state"] == "ready"
    assert (told["engine"]["model"], told["engine"]["device"]) == ("bundled", "cpu")
    assert told["engine"]["loaded_s"] >= 0
    assert told["engine"]["rss_nbytes"] > 100e6


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
async def test_a_bar_is_there_for_as_long_as_a_load_lasts(tmp_path: Path):
    model = tmp_path / "slow.json"
    os.mkfifo(model)
    with home() as place:
        async with window(place, "neovim", model=f"oracle:{model}", ready=False) as opened:

            async def kinds() -> list[str]:
                return [report.kind for report in opened.client.progress_reports.get("dg-lsp/load/1", [])]

            async def ended() -> bool:
                return (await kinds())[-1] == "end"

            await until(kinds, "a bar")
            assert not await ended()
            await asyncio.to_thread(model.write_text, '{"cases": [{"text": "x = ▮1▮"}]}')
            await opened.until_ready()
            await until(ended, "the bar's end")
            begin, *reports, _ = opened.client.progress_reports["dg-lsp/load/1"]
            assert (begin.kind, begin.title, begin.percentage) == ("begin", "dg-lsp", 0)
            assert {report.kind for report in reports} <= {"report"}


async def test_suggestions_come_and_leave_files_that_parse(held: Window):
    before = (await held.status(engine=True))["engine"]
    shown = 0
    for marked in GAPS:
        held.open(marked)
        text = held.editor.buffer.text
        for ghost in await held.ghosts(invoked=True):
            shown += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text[: ghost.start] + ghost.text + text[ghost.end :])
    assert shown >= 1
    after = (await held.status(engine=True))["engine"]
    assert after["served"] - before["served"] == len(GAPS)
    assert after["forwards"] > before["forwards"]


async def test_typing_along_is_served_without_the_model(held: Window):
    for marked in GAPS:
        held.open(marked)
        whole = await held.ghost()
        if whole and len(whole) > 1:
            break
    else:
        pytest.skip("the model is silent everywhere")
    before = await held.counts()
    held.editor.type(whole[0])
    assert await held.ghost() == whole[1:]
    after = await held.counts()
    assert (after["sent"], after["without_model"]) == (before["sent"], before["without_model"] + 1)


def own_nbytes(pid: int) -> int:
    """Without pages of files: the kernel takes those of libraries away and brings them back as it likes."""
    told = psutil.Process(pid).memory_info()
    return told.rss - getattr(told, "shared", 0)


async def test_weights_are_given_back_after_a_rest_and_return_when_asked():
    with home() as place:
        options = {**PATIENT, "engine": {"unload_after_s": 3}}
        async with window(place, options=options, model="bundled") as opened:

            async def engine() -> dict[str, object]:
                return (await opened.status(engine=True))["engine"]

            async def unloaded() -> bool:
                return (await engine())["state"]["name"] == "unloaded"

            async def held_nbytes() -> int:
                # With a fill, what is made once and stays is there.
                opened.open(GAPS[0])
                await opened.ghosts(invoked=True)
                nbytes = own_nbytes((await engine())["pid"])
                # On a busy machine the rest may have been over before the look.
                return nbytes if (await engine())["state"]["name"] == "ready" else 0

            loaded_nbytes = await until(held_nbytes, "a look at the loaded model")
            await until(unloaded, "the weights to be given back")
            # The weights take twice as much in memory as in their file; what else was in use then varies.
            assert loaded_nbytes - own_nbytes((await engine())["pid"]) > WEIGHTS.stat().st_size
            await until(held_nbytes, "the weights to return")
