"""Plays a session: events at their times, a request after each change, answers measured as they come."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from dg_lsp.replay.clients import Style
from dg_lsp.replay.editor import Asked, Editor, Ghost
from dg_lsp.replay.session import Accept, Event, Focus, Open, Session, Type

LOOK_S = 2.0
"""How long a person who wants to accept waits for something to appear."""
KEY_GAP_S = 0.08
"""Between keys typed because the hoped-for suggestion was not there."""


@dataclass(slots=True, kw_only=True)
class ReplayOutcome:
    keys: int = 0
    """Changes to documents, and cursor jumps."""
    requests: int = 0
    latencies_ms: list[float] = field(default_factory=list[float])
    """From key to answer, of answers that were still wanted when they came."""
    suggestions: int = 0
    """Of those answers, how many held a suggestion."""
    superseded: int = 0
    """Requests whose answer was no longer wanted when it came, or that were cancelled."""
    stale: int = 0
    """Suggestions made for another version of the document than asked for, or behind a newer answer."""
    errors: int = 0
    accepted: int = 0
    accepted_chars: int = 0
    typed_instead: int = 0
    """Suggestions hoped for in vain."""


class Player:
    """Plays one session in one editor. `speed` 2 takes half the time."""

    def __init__(self, editor: Editor, style: Style, speed: float) -> None:
        self.outcome = ReplayOutcome()
        self._editor = editor
        self._style = style
        self._speed = speed
        self._latest: dict[str, Asked] = {}
        self._answered: dict[str, int] = {}
        self._shown: tuple[Asked, list[Ghost]] | None = None

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
        """Do it, or accept it, and ask for what comes next."""
        self._shown = None
        if isinstance(event, Ghost):
            self._editor.accept(event)
        else:
            self._editor.do(event)
        self.outcome.keys += 1
        previous = self._latest.get(self._editor.buffer.uri)
        if previous and not previous.answer.done() and self._style.cancels:
            self._editor.cancel(previous)
        asked = self._editor.ask()
        self._latest[asked.buffer.uri] = asked
        self.outcome.requests += 1
        asked.answer.add_done_callback(partial(self._hear, asked))

    def _hear(self, asked: Asked, answer: asyncio.Future[Any]) -> None:
        took_ms = (time.perf_counter() - asked.at_s) * 1000
        error = answer.exception()
        if error is not None:
            cancelled = isinstance(error, JsonRpcException) and error.code == JsonRpcRequestCancelled.CODE
            self.outcome.superseded += cancelled
            self.outcome.errors += not cancelled
            return
        ghosts = self._editor.ghosts(asked, answer.result())
        newest = self._answered[asked.buffer.uri] = max(asked.id, self._answered.get(asked.buffer.uri, 0))
        self.outcome.stale += bool(ghosts) and (asked.id < newest or ghosts[0].version != asked.buffer.version)
        if self._latest[asked.buffer.uri] is not asked:
            self.outcome.superseded += 1
            return
        self.outcome.latencies_ms.append(took_ms)
        self.outcome.suggestions += bool(ghosts)
        self._shown = (asked, ghosts)

    async def _accept(self, event: Accept) -> None:
        await self._settled()
        text, added = event.text, self._added()
        if self._shown and added and (added.startswith(text) or text.startswith(added)):
            taken = added if text.startswith(added) else text
            self.outcome.accepted += 1
            self.outcome.accepted_chars += len(taken)
            self._do(self._shown[1][0] if taken == added else Type(at=event.at, text=taken))
            text = text[len(taken) :]
        else:
            self.outcome.typed_instead += 1
        for character in text:
            await asyncio.sleep(KEY_GAP_S / self._speed)
            self._do(Type(at=event.at, text=character))

    def _added(self) -> str:
        """What the suggestion shown would put behind the cursor; empty where it would change more than that."""
        if not self._shown or not self._shown[1]:
            return ""
        asked, (ghost, *_) = self._shown
        typed = asked.buffer.text[ghost.start : asked.buffer.cursor]
        return ghost.text[len(typed) :] if ghost.end == asked.buffer.cursor and ghost.text.startswith(typed) else ""

    async def _settled(self) -> None:
        waiting = {asked.answer for asked in self._latest.values() if not asked.answer.done()}
        if waiting:
            await asyncio.wait(waiting, timeout=LOOK_S)
