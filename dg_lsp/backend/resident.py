"""The engine as the language server uses it: kept loaded, with time limits; failures go to the status."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator

from dg_lsp.backend.client import EngineClient, EngineFailure
from dg_lsp.backend.status import StatusBoard
from dg_lsp.config.settings import CPU_DEADLINE_MS, GPU_DEADLINE_MS
from engine.common.messages import EngineStatus
from engine.common.request import Draft, Filled, FillRequest

BUSY_AFTER_S = 0.15
"""The status shows "busy" after this long: earlier, it would flicker."""

_QUIET = ("superseded", "cancelled", "late", "busy", "stopping")
"""Codes of failures that say nothing about the engine's health."""


class Resident:
    """Sends requests to the engine and reports its health to the status board."""

    def __init__(self, client: EngineClient, board: StatusBoard) -> None:
        self.client = client
        self._board = board
        self._long = frozenset[object]()
        self._warming: asyncio.Task[None] | None = None
        self.instructions: bool | None = None
        """Whether the model follows instructions; None: not known yet."""
        self.device = ""

    @property
    def is_ready(self) -> bool:
        """Whether the model is loaded."""
        return self.client.state.name == "ready"

    @property
    def deadline_ms(self) -> float:
        """The default deadline of an answer on the model's device; until that is known, a CPU's."""
        return CPU_DEADLINE_MS if not self.device or self.device.startswith("cpu") else GPU_DEADLINE_MS

    async def learn(self) -> EngineStatus:
        """Query the engine's status and keep what matters here. Raises EngineFailure."""
        status = await self.client.status()
        # Where the weights are to go is not yet where they are.
        self.device = status.device if status.state.name == "ready" else ""
        self.instructions = status.instructions
        return status

    def forget(self) -> None:
        """The engine is gone; the next one may have another model on another device."""
        self.device, self.instructions = "", None

    def warm(self) -> None:
        """Load the model in the background."""
        if self._warming is None:
            self._warming = asyncio.create_task(self._warm(), name="warm the engine")

    async def wait_until_ready(self) -> bool:
        """Wait until the model is loaded, for `load_s` at most; return whether it is."""
        self.warm()
        if self._warming and not self.is_ready:
            await asyncio.wait({self._warming}, timeout=self.client.timeouts.load_s)
        return self.is_ready

    async def fill(self, request: FillRequest, document: str) -> Filled | None:
        """The engine's answer; None where it failed or was superseded."""
        timeout_s = None if request.deadline_ms is None else request.deadline_ms / 1000 + self.client.timeouts.grace_s
        try:
            with self._shown_busy():
                filled = await self.client.fill(request, document=document, timeout_s=timeout_s)
        except EngineFailure as failure:
            if failure.code not in _QUIET:
                self._board.trouble(str(failure))
            return None
        self._board.trouble("")
        self._board.learnt(filled.adapter)
        return filled

    async def edit(
        self, request: FillRequest, document: str, on_draft: Callable[[Draft], None] | None = None
    ) -> Filled:
        """The engine's answer to an edit that the user waits for; typing has priority. Raises EngineFailure."""
        bound_s = self.client.timeouts.edit_s
        with self._shown_busy():
            filled = await self.client.fill(
                request, document=document, priority="background", on_draft=on_draft, timeout_s=bound_s
            )
        self._board.learnt(filled.adapter)
        if self.instructions is None:
            # To know that is worth little beside the answer.
            with contextlib.suppress(EngineFailure, TimeoutError):
                async with asyncio.timeout(self.client.timeouts.learn_s):
                    await self.learn()
        return filled

    async def close(self) -> None:
        """Disconnect; the engine keeps running for others."""
        if self._warming:
            self._warming.cancel()
        await self.client.close()

    @contextlib.contextmanager
    def _shown_busy(self) -> Generator[None]:
        """Show "busy" once this lasts, until the last of several is done."""
        work = object()
        timer = asyncio.get_running_loop().call_later(BUSY_AFTER_S, self._lasts, work, True)
        try:
            yield
        finally:
            timer.cancel()
            self._lasts(work, False)

    def _lasts(self, work: object, lasts: bool) -> None:
        self._long = self._long | {work} if lasts else self._long - {work}
        self._board.busy(bool(self._long))

    async def _warm(self) -> None:
        self._board.warming(True)
        try:
            await self.client.warm()
            await self.learn()
        except EngineFailure as failure:
            self._board.trouble(str(failure))
        else:
            self._board.trouble("")
        finally:
            self._board.warming(False)
            self._warming = None
