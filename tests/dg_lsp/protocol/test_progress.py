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

    async def send_request_async(self, method: str, params: Any) -> None:
        self.told.append(method)

    def notify(self, method: str, params: Any) -> None:
        self.told.append(params.value.kind)


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
