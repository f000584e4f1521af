"""What a status line shows: one word for the state, and a sentence where needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from engine.common.messages import EngineState

Name = Literal["starting", "loading", "ready", "busy", "off", "error"]
_NOT_RUNNING = "The engine is not running: the next request starts it, or run `dg-lsp engine run --detach`."
_NOT_LOADED = "The model is not in memory; the next request loads it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of the language server and its engine."""

    state: Name
    percent: float | None = None
    """Progress of loading, in [0, 100]; None: unknown."""
    message: str = ""
    silence: str = ""
    """A sentence: why the last automatic request showed nothing. Empty where it showed something."""
    origin: str = ""
    """Which place the last automatic suggestion is from, as in "from src/shapes.py:12"; empty: the model wrote it."""
    adapter: str = ""
    """The tuned folder whose adapter answered last; empty: none did."""
    server: str = ""
    """The server to which text is sent; empty: it stays on this machine."""


class StatusBoard:
    """Combines what several parts know into one status. `publish` is called with every change, in order."""

    def __init__(self, publish: Callable[[Status], None]) -> None:
        self._publish = publish
        self._engine = EngineState(name="starting")
        self._trouble = ""
        self._busy = False
        self._warming = False
        self._off = ""
        self._silence = ""
        self._origin = ""
        self._adapter = ""
        self._server = ""
        self.current = Status(state="starting")

    def engine(self, state: EngineState, server: str = "") -> None:
        """The engine's state changed. `server`: where its model runs; empty: here."""
        self._server = server
        if state.name == "ready":
            self._trouble = ""
        self._engine = state
        self._refresh()

    def trouble(self, message: str) -> None:
        """A sentence about what is wrong; "" once it is over."""
        self._trouble = message
        self._refresh()

    def busy(self, busy: bool) -> None:
        """Whether the model has been working for noticeably long."""
        self._busy = busy
        self._refresh()

    def warming(self, warming: bool) -> None:
        """Whether loading was requested and is not confirmed yet."""
        self._warming = warming
        self._refresh()

    def off(self, why: str) -> None:
        """A sentence if suggestions are off everywhere; "" if not."""
        self._off = why
        self._refresh()

    def shown(self, silence: str, origin: str) -> None:
        """The outcome of the last automatic request. `silence`: a sentence, why it showed nothing, or "". `origin`:
        where a shown workspace match is from, "" for the model's own text."""
        self._silence, self._origin = silence, origin
        self._refresh()

    def learnt(self, folder: str) -> None:
        """The tuned folder whose adapter answered last; "" for none."""
        self._adapter = folder
        self._refresh()

    def _refresh(self) -> None:
        status = replace(self._status(), server=self._server)
        if status != self.current:
            self.current = status
            self._publish(status)

    def _status(self) -> Status:
        engine = self._engine
        if self._off:
            return Status(state="off", message=self._off)
        if engine.name in ("starting", "loading"):
            return Status(state=engine.name, percent=engine.percent, message=engine.message)
        if engine.name == "error" or self._trouble:
            return Status(state="error", message=engine.message if engine.name == "error" else self._trouble)
        if engine.name == "off":
            return Status(state="off", message=engine.message or _NOT_RUNNING)
        if engine.name == "unloaded" and self._warming:
            return Status(state="loading")
        if engine.name == "unloaded":
            return Status(state="ready", message=f"{_NOT_LOADED} {engine.message}".strip())
        state = "busy" if self._busy else "ready"
        return Status(
            state=state,
            message=engine.message,
            silence=self._silence,
            origin=self._origin,
            adapter=self._adapter,
        )
