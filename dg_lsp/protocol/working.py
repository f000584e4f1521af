"""`$/progress` with a cancel button for work that somebody asked for and waits for."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from lsprotocol.types import ProgressToken, WorkDoneProgressBegin, WorkDoneProgressEnd
from pygls.exceptions import JsonRpcException
from pygls.progress import Progress

from dg_lsp.protocol.progress import CREATE_S, SHORT_S

T = TypeVar("T")


class Working:
    """Shows work in the client. `in_background` runs the bar, `can_create` says whether bars may be made unasked."""

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

    async def show(self, title: str, token: ProgressToken | None, work: Coroutine[Any, Any, T]) -> T | None:
        """Do the work; None where the user cancelled it by its bar. `token`: the client's own bar."""
        task = asyncio.create_task(work)
        if token is not None or self._can_create():
            self._in_background(self._follow(title, token, task))
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        return None if task.cancelled() else task.result()

    async def _follow(self, title: str, token: ProgressToken | None, task: asyncio.Task[Any]) -> None:
        if token is None:
            await asyncio.wait({task}, timeout=SHORT_S)
            if task.done():
                return
            token = f"dg-lsp/work/{next(self._numbers)}"
            # A client that refuses or does not answer has no bar.
            with contextlib.suppress(JsonRpcException, TimeoutError):
                async with asyncio.timeout(CREATE_S):
                    await self._progress.create_async(token)
            if token not in self._progress.tokens:
                return
        await self._draw(title, token, task)

    async def _draw(self, title: str, token: ProgressToken, task: asyncio.Task[Any]) -> None:
        def cancel(future: Future[Any]) -> None:
            if future.cancelled():
                task.cancel()

        self._progress.begin(token, WorkDoneProgressBegin(title=title, cancellable=True))
        self._progress.tokens[token].add_done_callback(cancel)
        try:
            await asyncio.wait({task})
        finally:
            self._progress.end(token, WorkDoneProgressEnd())
            self._progress.tokens.pop(token, None)
