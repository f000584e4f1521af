"""Plays a session: events at their times, a request after each change, answers measured as they come."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dg_lsp.documents.positions import Encoding
from dg_lsp.replay.connection import RequestError
from dg_lsp.replay.editor import Asked, Editor, Ghost
from dg_lsp.replay.session import Accept, Delete, Event, Focus, Move, Open, Session, Type

REQUEST_CANCELLED = -32800
LOOK_S = 2.0
"""How long a person who wants to accept waits for something to appear."""
KEY_GAP_S = 0.08
"""Between keys typed because the hoped-for suggestion was not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How an editor behaves."""

    name: str
    encodings: tuple[Encoding, ...]
    cancels: bool
    """Whether it cancels a request when it sends the next."""


STYLES = {
    style.name: style
    for style in (
        Style(name="vscode", encodings=("utf-16",), cancels=True),
        Style(name="neovim", encodings=("utf-8", "utf-16", "utf-32"), cancels=False),
        Style(name="emacs", encodings=("utf-32", "utf-8", "utf-16"), cancels=False),
    )
}


@dataclass(slots=True, kw_only=True)
class ReplayOutcome:
    """What a session came to."""

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
        """From the first event to the last answer."""
        began_s = time.perf_counter()
        for event in session.events:
            await asyncio.sleep(max(began_s + event.at / 1000 / self._speed - time.perf_counter(), 0))
            await self._do(event)
        await self._settled()
        return self.outcome

    async def _do(self, event: Event) -> None:
        editor = self._editor
        match event:
            case Open():
                editor.open(event.path, event.language, event.text, event.cursor)
            case Focus():
                editor.path = event.path
            case Accept():
                await self._accept(event.text)
            case Type():
                self._key(partial(editor.type, event.text))
            case Delete():
                self._key(partial(editor.delete, event.count))
            case Move():
                editor.buffer.cursor = event.cursor
                self._key(lambda: None)
            case _:
                self._key(editor.undo)

    def _key(self, act: Any) -> None:
        self._shown = None
        act()
        self.outcome.keys += 1
        self._ask()

    def _ask(self) -> None:
        uri = self._editor.buffer.uri
        previous = self._latest.get(uri)
        if previous and not previous.answer.done() and self._style.cancels:
            self._editor.cancel(previous)
        asked = self._latest[uri] = self._editor.ask()
        self.outcome.requests += 1
        asked.answer.add_done_callback(lambda answer: self._hear(asked, answer))

    def _hear(self, asked: Asked, answer: asyncio.Future[Any]) -> None:
        took_ms = (time.perf_counter() - asked.at_s) * 1000
        wanted = self._latest[asked.uri] is asked
        error = answer.exception()
        if error is not None:
            cancelled = isinstance(error, RequestError) and error.code == REQUEST_CANCELLED
            self.outcome.superseded += cancelled
            self.outcome.errors += not cancelled
            return
        ghosts = self._editor.ghosts(asked, answer.result())
        late = asked.id < self._answered.get(asked.uri, 0)
        self._answered[asked.uri] = max(asked.id, self._answered.get(asked.uri, 0))
        self.outcome.stale += bool(ghosts) and (late or ghosts[0].version != asked.version)
        if not wanted:
            self.outcome.superseded += 1
            return
        self.outcome.latencies_ms.append(took_ms)
        self.outcome.suggestions += bool(ghosts)
        self._shown = (asked, ghosts)

    async def _accept(self, text: str) -> None:
        await self._settled()
        added = self._added()
        if added and (added.startswith(text) or text.startswith(added)):
            taken = added if text.startswith(added) else text
            self._take(taken, whole=taken == added)
            text = text[len(taken) :]
        else:
            self.outcome.typed_instead += 1
        for character in text:
            await asyncio.sleep(KEY_GAP_S / self._speed)
            self._key(partial(self._editor.type, character))

    def _take(self, text: str, *, whole: bool) -> None:
        assert self._shown
        ghost = self._shown[1][0]
        self.outcome.accepted += 1
        self.outcome.accepted_chars += len(text)
        self._key(partial(self._editor.accept, ghost) if whole else partial(self._editor.type, text))

    def _added(self) -> str:
        """What the suggestion shown would put behind the cursor; empty where it would change more than that."""
        if not self._shown or not self._shown[1]:
            return ""
        asked, (ghost, *_) = self._shown
        typed = asked.lines.text[ghost.start : asked.cursor]
        return ghost.text[len(typed) :] if ghost.end == asked.cursor and ghost.text.startswith(typed) else ""

    async def _settled(self) -> None:
        """Wait until what was asked last is answered."""
        waiting = {asked.answer for asked in self._latest.values() if not asked.answer.done()}
        if waiting:
            await asyncio.wait(waiting, timeout=LOOK_S)
