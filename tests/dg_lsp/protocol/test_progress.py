"""Bars that editors show: nothing of them is kept once they have ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pygls.progress import Progress

from dg_lsp.backend.status import Status
from dg_lsp.protocol.progress import SHORT_S, ProgressBars


class Client:
    """Takes every bar."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.percentages: list[int | None] = []

    async def send_request_async(self, method: str, params: Any) -> None:
        self.told.append(method)

    def notify(self, method: str, params: Any) -> None:
        self.told.append(params.value.kind)
        self.percentages.append(getattr(params.value, "percentage", None))


@pytest.mark.asyncio
async def test_a_bar_that_ended_is_forgotten():
    client, tasks = Client(), set[asyncio.Task[None]]()
    progress = Progress(client)  # type: ignore[arg-type]
    bars = ProgressBars(progress, lambda work: tasks.add(asyncio.create_task(work)), lambda: True)
    bars.show_load(Status(state="loading"))
    async with asyncio.timeout(SHORT_S + 10):
        while "begin" not in client.told:
            await asyncio.sleep(0.01)
        bars.show_load(Status(state="ready"))
        await bars.show("Rewriting", None, asyncio.sleep(SHORT_S * 1.5))
        await asyncio.gather(*tasks)
    assert client.told.count("end") == 2
    assert not progress.tokens


@pytest.mark.asyncio
async def test_a_bar_shows_how_far_a_load_has_come():
    client, tasks = Client(), set[asyncio.Task[None]]()
    bars = ProgressBars(Progress(client), lambda work: tasks.add(asyncio.create_task(work)), lambda: True)  # type: ignore[arg-type]
    async with asyncio.timeout(SHORT_S + 10):
        for at, percent in enumerate((None, 12.4, 99.6)):
            bars.show_load(Status(state="loading", percent=percent))
            while len(client.percentages) <= at:
                await asyncio.sleep(0.01)
        bars.show_load(Status(state="ready"))
        await asyncio.gather(*tasks)
    assert client.told[1:] == ["begin", "report", "report", "report", "end"]
    assert client.percentages == [0, 12, 100, None, None]
