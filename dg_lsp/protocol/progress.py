"""`$/progress`: while a model loads, and, with a cancel button, for edits that the user waits for."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from lsprotocol.types import ProgressToken, WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport
from pygls.exceptions import JsonRpcException
from pygls.progress import Progress

from dg_lsp.backend.status import Status

T = TypeVar("T")

SHORT_S = 0.3
"""Shorter work gets no progress bar."""
CREATE_S = 10.0
"""How long a client may take to create a progress bar."""


class Report:
    """How far a piece of work has come, told by whoever does it."""

    def __init__(self) -> None:
        self.message = ""
        self.percentage = 0
        self.changed = asyncio.Event()

    def tell(self, message: str, percentage: int) -> None:
        self.message, self.percentage = message, percentage
        self.changed.set()


class ProgressBars:
    """The progress bars of one client. `in_background` runs a bar; `can_create` tells whether the server may create
    bars."""

    def __init__(
        self,
        progress: Progress,
        in_background: Callable[[Coroutine[Any, Any, None]], None],
        can_create: Callable[[], bool],
    ) -> None:
        self._progress = progress
        self._in_background = in_background
        self._can_create = can_create
        self._numbers = itertools.count(1)
        self._status = Status(state="starting")
        self._changed = asyncio.Event()
        self._shows_load = False

    def show_load(self, status: Status) -> None:
        """The status changed: show a bar while the engine starts or the model loads."""
        self._status = status
        self._changed.set()
        if self._is_loading and not self._shows_load and self._can_create():
            self._shows_load = True
            self._in_background(self._follow_load())

    async def show(
        self, title: str, token: ProgressToken | None, work: Coroutine[Any, Any, T], report: Report | None = None
    ) -> T | None:
        """Do work under a progress bar, with a percentage where it is told one; None where the user cancelled it there.
        `token`: the client's own bar."""
        task = asyncio.create_task(work)
        if token is not None or self._can_create():
            self._in_background(self._follow(title, token, task, report))
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        return None if task.cancelled() else task.result()

    @property
    def _is_loading(self) -> bool:
        return self._status.state in ("starting", "loading")

    async def _created(self, kind: str) -> ProgressToken | None:
        """Create a bar; None where the client refuses or does not answer."""
        token = f"dg-lsp/{kind}/{next(self._numbers)}"
        with contextlib.suppress(JsonRpcException, TimeoutError):
            async with asyncio.timeout(CREATE_S):
                await self._progress.create_async(token)
                return token
        return None

    async def _follow_load(self) -> None:
        try:
            await asyncio.sleep(SHORT_S)
            token = await self._created("load") if self._is_loading else None
            if token is None:
                return
            # A bar that begins without a percentage may ignore later ones.
            begin = WorkDoneProgressBegin(title="dg-lsp", message=self._words, percentage=self._percentage or 0)
            self._progress.begin(token, begin)
            while self._is_loading:
                self._changed.clear()
                await self._changed.wait()
                report = WorkDoneProgressReport(message=self._words, percentage=self._percentage)
                self._progress.report(token, report)
            self._end(token, self._words)
        finally:
            self._shows_load = False

    @property
    def _words(self) -> str:
        words = {"starting": "Starting the engine", "loading": "Loading the model", "ready": "Ready"}
        return self._status.message or words.get(self._status.state, self._status.state)

    @property
    def _percentage(self) -> int | None:
        return None if self._status.percent is None else round(self._status.percent)

    async def _follow(
        self, title: str, token: ProgressToken | None, task: asyncio.Task[Any], report: Report | None
    ) -> None:
        if token is None:
            await asyncio.wait({task}, timeout=SHORT_S)
            token = None if task.done() else await self._created("work")
            if token is None:
                return

        def cancel(future: Future[Any]) -> None:
            if future.cancelled():
                task.cancel()

        begin = WorkDoneProgressBegin(title=title, cancellable=True, percentage=report and report.percentage)
        self._progress.begin(token, begin)
        self._progress.tokens[token].add_done_callback(cancel)
        try:
            if report is not None:
                await self._tell(token, task, report)
            await asyncio.wait({task})
        finally:
            self._end(token)

    async def _tell(self, token: ProgressToken, task: asyncio.Task[Any], report: Report) -> None:
        """Pass on what is told until the work is done."""
        while not task.done():
            told = asyncio.create_task(report.changed.wait())
            await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
            report.changed.clear()
            held = WorkDoneProgressReport(message=report.message, percentage=report.percentage)
            self._progress.report(token, held)

    def _end(self, token: ProgressToken, message: str | None = None) -> None:
        self._progress.end(token, WorkDoneProgressEnd(message=message))
        self._progress.tokens.pop(token, None)
