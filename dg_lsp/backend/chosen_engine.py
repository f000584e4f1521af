"""The engine that a window's settings describe, and what to do where a different one runs."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

from dg_lsp.backend.client import EngineFailure, Launch
from dg_lsp.backend.connection import started
from dg_lsp.backend.launch import begin_restart, difference, is_other_release
from dg_lsp.backend.resident import Resident
from dg_lsp.config.settings import EngineSettings

REPLACE, LATER = "Replace It Now", "Later"


class ChosenEngine:
    """Which engine is wanted. `settings()` waits for the user's settings; `choose(question, choices)` asks the user and
    returns the choice, or ""; `complain` logs a sentence."""

    def __init__(
        self,
        launch: Launch,
        settings: Callable[[], Awaitable[EngineSettings]],
        *,
        choose: Callable[[str, tuple[str, ...]], Awaitable[str]],
        complain: Callable[[str], None],
    ) -> None:
        self._launch = launch
        self._settings = settings
        self._choose = choose
        self._complain = complain
        self.other = ""
        """The latest sentence about an engine that runs with other options than these settings."""

    async def launch(self) -> Launch:
        """How an engine is started if none runs."""
        return self._launch.chosen(await self._settings())

    async def compare(self, resident: Resident) -> None:
        """Tell the user once if the running engine differs from the settings; replace one of another release if the
        user agrees."""
        with contextlib.suppress(EngineFailure):
            status = await resident.learn()
            other = difference(await self.launch(), status)
            is_news, self.other = other != self.other, other
            if not other or not is_news:
                return
            self._complain(other)
            if is_other_release(status) and await self._choose(other, (REPLACE, LATER)) == REPLACE:
                await self._replace(resident)

    async def _replace(self, resident: Resident) -> None:
        try:
            # Another window may have done it while the question was shown.
            if is_other_release(await resident.client.status()):
                await started(begin_restart())
        except EngineFailure as failure:
            self._complain(str(failure))
