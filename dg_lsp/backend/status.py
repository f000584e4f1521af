"""What a status line shows: one word for how things stand, and a sentence where a word is not enough."""

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
    """How things stand."""

    state: Name
    percent: float | None = None
    """How far loading has come, in [0, 100]; None: unknown."""
    message: str = ""
    silence: str = ""
    """Why the last automatic request showed nothing, in a sentence; empty where it showed something."""
    origin: str = ""
    """Where what the last automatic request showed stands already, "elsewhere: src/shapes.py:12"; empty: the model
    wrote it."""
    adapter: str = ""
    """The folder that was learnt by what answered last; empty: the model alone did."""
    server: str = ""
    """Where text goes, however things stand; empty: it stays on this machine."""


class StatusBoard:
    """Puts together what several parts know. `publish` is told every change, in order."""

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
        """The engine's state changed; `server` runs its model."""
        self._server = server
        if state.name == "ready":
            self._trouble = ""
        self._engine = state
        self._refresh()

    def trouble(self, message: str) -> None:
        """Something is wrong, in a sentence; "" when it is over."""
        self._trouble = message
        self._refresh()

    def busy(self, busy: bool) -> None:
        """The model has been at work for so long that somebody may wonder."""
        self._busy = busy
        self._refresh()

    def warming(self, warming: bool) -> None:
        """The model was asked to load, and has not answered yet."""
        self._warming = warming
        self._refresh()

    def off(self, why: str) -> None:
        """Suggestions are switched off everywhere, in a sentence; "" when they are not."""
        self._off = why
        self._refresh()

    def shown(self, silence: str, origin: str) -> None:
        """The last automatic request showed nothing, and why, in a sentence; "" when it showed something, which stands
        at `origin` or was written by the model."""
        self._silence, self._origin = silence, origin
        self._refresh()

    def learnt(self, folder: str) -> None:
        """What answered last has learnt this folder; "" for the model alone."""
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
