"""Plays a session: events at their times, a request after each change; measures the answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from dg_lsp.replay.clients import Style
from dg_lsp.replay.editor import Editor, Ghost, PendingRequest
from dg_lsp.replay.session import Accept, Event, Focus, Open, Session, Type

LOOK_S = 2.0
"""How long a user who wants to accept waits for a suggestion."""
KEY_GAP_S = 0.08
"""Pause between keys that are typed instead of a missing suggestion."""


@dataclass(slots=True, kw_only=True)
class ReplayOutcome:
    keys: int = 0
    """Changes of documents, and cursor movements."""
    requests: int = 0
    latencies_ms: list[float] = field(default_factory=list[float])
    """Milliseconds from key to answer, for answers that were still current."""
    suggestions: int = 0
    """Of those answers, the ones with a suggestion."""
    superseded: int = 0
    """Requests that were cancelled or whose answer was outdated."""
    stale: int = 0
    """Suggestions for another version of the document than requested, or that came after a newer answer."""
    errors: int = 0
    accepted: int = 0
    accepted_chars: int = 0
    typed_instead: int = 0
    """Accept events without a fitting suggestion."""


class Player:
    """Plays one session in one editor. `speed` 2: in half the time."""

    def __init__(self, editor: Editor, style: Style, speed: float) -> None:
        self.outcome = ReplayOutcome()
        self._editor = editor
        self._style = style
        self._speed = speed
        self._latest: dict[str, PendingRequest] = {}
        self._answered: dict[str, int] = {}
        self._shown: tuple[PendingRequest, list[Ghost]] | None = None

    async def play(self, session: Session) -> ReplayOutcome:
        began_s = time.perf_counter()
        for event in session.events:
            await asyncio.sleep(max(began_s + event.at / 1000 / self._speed - time.perf_counter(), 0))
            match event:
                case Open() | Focus():
                    self._editor.do(event)
                case Accept():
                    await self._accept(event)
                case _:
                    self._do(event)
        await self._settled()
        return self.outcome

    def _do(self, event: Event | Ghost) -> None:
        """Apply an event or accept a suggestion, then request the next one."""
        self._shown = None
        if isinstance(event, Ghost):
            self._editor.accept(event)
        else:
            self._editor.do(event)
        self.outcome.keys += 1
        previous = self._latest.get(self._editor.buffer.uri)
        if previous and not previous.answer.done() and self._style.cancels:
            self._editor.cancel(previous)
        request = self._editor.ask()
        self._latest[request.buffer.uri] = request
        self.outcome.requests += 1
        request.answer.add_done_callback(partial(self._hear, request))

    def _hear(self, request: PendingRequest, answer: asyncio.Future[Any]) -> None:
        took_ms = (time.perf_counter() - request.at_s) * 1000
        error = answer.exception()
        if error is not None:
            cancelled = isinstance(error, JsonRpcException) and error.code == JsonRpcRequestCancelled.CODE
            self.outcome.superseded += cancelled
            self.outcome.errors += not cancelled
            return
        ghosts = self._editor.ghosts(request, answer.result())
        newest = self._answered[request.buffer.uri] = max(request.id, self._answered.get(request.buffer.uri, 0))
        self.outcome.stale += bool(ghosts) and (request.id < newest or ghosts[0].version != request.buffer.version)
        if self._latest[request.buffer.uri] is not request:
            self.outcome.superseded += 1
            return
        self.outcome.latencies_ms.append(took_ms)
        self.outcome.suggestions += bool(ghosts)
        self._shown = (request, ghosts)

    async def _accept(self, event: Accept) -> None:
        await self._settled()
        text, added = event.text, self._added()
        if self._shown and added and (added.startswith(text) or text.startswith(added)):
            accepted = added if text.startswith(added) else text
            self.outcome.accepted += 1
            self.outcome.accepted_chars += len(accepted)
            self._do(self._shown[1][0] if accepted == added else Type(at=event.at, text=accepted))
            text = text[len(accepted) :]
        else:
            self.outcome.typed_instead += 1
        for character in text:
            await asyncio.sleep(KEY_GAP_S / self._speed)
            self._do(Type(at=event.at, text=character))

    def _added(self) -> str:
        """What the shown suggestion would add after the cursor; empty where it would change more."""
        if not self._shown or not self._shown[1]:
            return ""
        request, (ghost, *_) = self._shown
        typed = request.buffer.text[ghost.start : request.buffer.cursor]
        return ghost.text[len(typed) :] if ghost.end == request.buffer.cursor and ghost.text.startswith(typed) else ""

    async def _settled(self) -> None:
        waiting = {request.answer for request in self._latest.values() if not request.answer.done()}
        if waiting:
            await asyncio.wait(waiting, timeout=LOOK_S)
