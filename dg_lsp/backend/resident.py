"""The engine as the language server uses it: kept warm, asked with bounds; failures become a sentence or silence."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator

from dg_lsp.backend.client import EngineClient, EngineFailure
from dg_lsp.backend.status import StatusBoard
from engine.common.messages import EngineStatus
from engine.common.request import Draft, Filled, FillRequest

GPU_DEADLINE_MS = 300.0
CPU_DEADLINE_MS = 1000.0
BUSY_AFTER_S = 0.15
"""Shorter fills would only make a status line flicker."""

_QUIET = ("superseded", "cancelled", "late", "busy", "stopping")
"""Failures that say nothing about the engine's health."""


class Resident:
    """Asks the engine, and tells the board what that is like."""

    def __init__(self, client: EngineClient, board: StatusBoard) -> None:
        self.client = client
        self._board = board
        self._long = frozenset[object]()
        self._warming: asyncio.Task[None] | None = None
        self.instructions: bool | None = None
        """Whether the model follows instructions; None: nobody asked it yet."""
        self._device = ""

    @property
    def is_ready(self) -> bool:
        """Whether a fill would be answered without loading anything."""
        return self.client.state.name == "ready"

    @property
    def deadline_ms(self) -> float:
        """How long a first answer may take on the device that the model is on; it may be a CPU until it is known."""
        return CPU_DEADLINE_MS if not self._device or self._device.startswith("cpu") else GPU_DEADLINE_MS

    def learned(self, *, device: str, instructions: bool | None) -> None:
        """What an engine said of itself."""
        self._device, self.instructions = device, instructions

    async def learn(self) -> EngineStatus:
        """Ask the engine what it is, and keep what matters of the answer. Raises EngineFailure."""
        status = await self.client.status()
        # Where the weights are to go is not yet where they are.
        device = status.device if status.state.name == "ready" else ""
        self.learned(device=device, instructions=status.instructions)
        return status

    def forget(self) -> None:
        """The engine is gone; the next one may be another on another device."""
        self.learned(device="", instructions=None)

    def warm(self) -> None:
        """See to it that the model is loaded, in the background. How often that is tried is the engine's to say."""
        if self._warming is None:
            self._warming = asyncio.create_task(self._warm(), name="warm the engine")

    async def wait_until_ready(self) -> bool:
        """Wait for the model, within bounds; whether it is there."""
        self.warm()
        if self._warming and not self.is_ready:
            await asyncio.wait({self._warming}, timeout=self.client.timeouts.load_s)
        return self.is_ready

    async def fill(self, request: FillRequest, document: str) -> Filled | None:
        """The engine's answer, or None where it has none."""
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
        """The engine's answer to work that somebody waits for; typing goes first. Raises EngineFailure."""
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
        """Let go of the engine, which goes on for others."""
        if self._warming:
            self._warming.cancel()
        await self.client.close()

    @contextlib.contextmanager
    def _shown_busy(self) -> Generator[None]:
        """Says that the engine is busy once this has lasted, until the last of several is over."""
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
