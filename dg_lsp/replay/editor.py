"""An editor as a language server sees it: documents, cursors, undo, ghost text."""

from __future__ import annotations

import asyncio
import time
from copy import copy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from lsprotocol.types import Range
from msgspec import convert, to_builtins

from dg_lsp.documents.positions import Encoding, Lines, position_at, range_of, span_of
from dg_lsp.replay.connection import ServerConnection
from dg_lsp.replay.session import Accept, Delete, Event, Focus, Move, Open, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Ghost:
    """A suggestion in the editor: the span that it replaces, with offsets of the document of the request."""

    start: int
    end: int
    text: str
    command: dict[str, Any] | None
    version: int
    """The version of the document that the server made it for."""


@dataclass(slots=True, kw_only=True)
class Buffer:
    uri: str
    language: str
    lines: Lines
    cursor: int
    version: int = 1
    undo: list[tuple[int, str, str, int]] = field(default_factory=list[tuple[int, str, str, int]])
    """Earlier edits: offset, removed, inserted, cursor before."""

    @property
    def text(self) -> str:
        return self.lines.text


@dataclass(slots=True, kw_only=True)
class PendingRequest:
    """A pending request for ghost text."""

    id: int
    buffer: Buffer
    """The document when the request was sent."""
    answer: asyncio.Future[Any]
    at_s: float


class Editor:
    """Sends what editors send; without a `wire`, nothing. Offsets inside, positions only on the wire.

    All methods act on the focused document, at its cursor.
    """

    def __init__(self, wire: ServerConnection | None, encoding: Encoding, folder: str = "/replay") -> None:
        self._wire = wire
        self._encoding: Encoding = encoding
        self._folder = folder
        self.buffers: dict[str, Buffer] = {}
        self.path = ""

    @property
    def buffer(self) -> Buffer:
        return self.buffers[self.path]

    def do(self, event: Event) -> None:
        """Apply an event; accepted text is typed."""
        match event:
            case Open():
                self.open(event.path, event.language, event.text, event.cursor)
            case Focus():
                self.path = event.path
            case Type() | Accept():
                self.type(event.text)
            case Delete():
                self.delete(event.count)
            case Move():
                self.buffer.cursor = event.cursor
            case _:
                self.undo()

    def open(self, path: str, language: str, text: str, cursor: int) -> None:
        uri = "file://" + quote(f"{self._folder}/{path}")
        self.path = path
        self.buffers[path] = Buffer(uri=uri, language=language, lines=Lines(text), cursor=cursor)
        self._tell("didOpen", {"uri": uri, "languageId": language, "version": 1, "text": text})

    def close(self) -> None:
        self._tell("didClose", {"uri": self.buffers.pop(self.path).uri})

    def type(self, text: str) -> None:
        self.replace(self.buffer.cursor, self.buffer.cursor, text)

    def delete(self, count: int) -> None:
        self.replace(max(self.buffer.cursor - count, 0), self.buffer.cursor, "")

    def undo(self) -> None:
        if self.buffer.undo:
            start, removed, inserted, cursor = self.buffer.undo.pop()
            self._change(start, start + len(inserted), removed, cursor)

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace a span and put the cursor after the new text."""
        self.buffer.undo.append((start, self.buffer.text[start:end], text, self.buffer.cursor))
        self._change(start, end, text, start + len(text))

    def ask(self, *, invoked: bool = False) -> PendingRequest:
        assert self._wire
        buffer = copy(self.buffer)
        position = to_builtins(position_at(buffer.lines, buffer.cursor, self._encoding))
        context = {"triggerKind": 1 if invoked else 2}
        params = {"textDocument": {"uri": buffer.uri}, "position": position, "context": context}
        id_, answer = self._wire.ask("textDocument/inlineCompletion", params)
        return PendingRequest(id=id_, buffer=buffer, answer=answer, at_s=time.perf_counter())

    def cancel(self, request: PendingRequest) -> None:
        assert self._wire
        self._wire.notify("$/cancelRequest", {"id": request.id})

    def ghosts(self, request: PendingRequest, result: Any) -> list[Ghost]:
        items = result["items"] if isinstance(result, dict) else result or ()
        return [self._ghost(request, item) for item in items]

    def accept(self, ghost: Ghost) -> None:
        """Insert a suggestion and run its command, as editors do."""
        self.replace(ghost.start, ghost.end, ghost.text)
        if ghost.command and self._wire:
            called = {key: ghost.command.get(key) for key in ("command", "arguments")}
            _, done = self._wire.ask("workspace/executeCommand", called)
            done.add_done_callback(lambda answer: answer.cancelled() or answer.exception())

    def _ghost(self, request: PendingRequest, item: dict[str, Any]) -> Ghost:
        start, end = span_of(request.buffer.lines, convert(item["range"], Range), self._encoding)
        command = item.get("command")
        version = command["arguments"][0]["version"] if command else request.buffer.version
        return Ghost(start=start, end=end, text=item["insertText"], command=command, version=version)

    def _change(self, start: int, end: int, text: str, cursor: int) -> None:
        buffer = self.buffer
        range_ = to_builtins(range_of(buffer.lines, start, end, self._encoding))
        buffer.lines = buffer.lines.replace(start, end, text)
        buffer.cursor = cursor
        buffer.version += 1
        changes = [{"range": range_, "text": text}]
        self._tell("didChange", {"uri": buffer.uri, "version": buffer.version}, contentChanges=changes)

    def _tell(self, what: str, document: dict[str, Any], **more: Any) -> None:
        if self._wire:
            self._wire.notify(f"textDocument/{what}", {"textDocument": document, **more})
