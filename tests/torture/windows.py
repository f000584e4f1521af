"""Windows that are typed into, and all processes behind them."""

from __future__ import annotations

import asyncio
import random
import sys
import time
import zlib
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil
from pygls.exceptions import JsonRpcException

from dg_lsp.replay.connection import ServerConnection, served
from dg_lsp.replay.editor import Editor, PendingRequest
from engine.syntax.languages import language_of
from tests.engine.processes import WAIT_S, Home

CODE = sorted((Path(__file__).parents[1] / "cases" / "syntax").iterdir())
LANGUAGES = ("python", "javascript", "typescript", "go", "rust", "c")


def code() -> list[Path]:
    """Files to type, in several languages."""
    return [path for path in CODE if language_of(path=path.name) in LANGUAGES]


def oracle(place: Home) -> str:
    """The name of a model that knows how each of them goes on."""
    return place.oracle(*({"text": f"▮{path.read_text()}▮", "reach": 40} for path in code()))


@dataclass
class Figures:
    """What happened in a window."""

    keys: int = 0
    answers: int = 0
    suggestions: int = 0
    stale: int = 0
    """Suggestions for another version than the one they were asked for."""
    wrong: list[str] = field(default_factory=list)
    """Documents whose text the server had otherwise, when it was asked."""
    compared: int = 0
    errors: list[str] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    """From a key to its answer, of the answers that were waited for."""


class Typist:
    """Types files into one window, with slips, undo, leaps, accepted suggestions and requests given up."""

    def __init__(self, wire: ServerConnection, seed: int) -> None:
        self.wire, self.figures = wire, Figures()
        self.editor = Editor(wire, "utf-16", f"/torture{seed}")
        self._rng = random.Random(seed)
        self._asked: list[PendingRequest] = []
        self._opened = 0

    async def type(self, keys: int, until_s: float = float("inf")) -> None:
        """So many keys more, or until the clock says so."""
        goal = self.figures.keys + keys
        while self.figures.keys < goal and time.monotonic() < until_s:
            path = self._rng.choice(code())
            await self.file(path, goal, until_s)

    async def file(self, path: Path, goal: int, until_s: float) -> None:
        """Open a new document and write into it what is in `path`."""
        self._opened += 1
        text, language = path.read_text(), language_of(path=path.name)
        # A few names again and again, as a person has a few files.
        self.editor.open(f"file{self._opened % 7}{path.suffix}", language or "", "", 0)
        while self.figures.keys < goal and time.monotonic() < until_s:
            written = self.editor.buffer.text
            if written == text:
                break
            self._key(text, written)
            await self._ask()
            if self._rng.random() < 0.005:
                await self.compare()
        await self._settle()
        await self.compare()
        self.editor.close()

    async def compare(self) -> None:
        """Is the server's text the editor's?"""
        buffer = self.editor.buffer
        told = (await self.wire.request("dg/status", {"uri": buffer.uri}))["document"]
        self.figures.compared += 1
        known, own = (told.get("version"), told.get("crc32")), (buffer.version, zlib.crc32(buffer.text.encode()))
        if known != own:
            self.figures.wrong.append(f"{buffer.uri}: the server has {known}, the editor {own}")

    async def ghosts(self) -> int:
        """How many suggestions there are at the cursor, asked for explicitly and waited for."""
        before = self.figures.suggestions
        self._asked.append(self.editor.ask(invoked=True))
        await self._settle()
        return self.figures.suggestions - before

    def _key(self, text: str, written: str) -> None:
        editor, rng = self.editor, self._rng
        self.figures.keys += 1
        if not text.startswith(written):
            # A slip is noticed after a while.
            if rng.random() < 0.6:
                editor.undo()
                if not editor.buffer.undo and editor.buffer.text:
                    editor.replace(0, len(editor.buffer.text), "")
                return
        elif rng.random() < 0.93:
            editor.replace(len(written), len(written), text[len(written)])
            return
        kind = rng.random()
        if kind < 0.4 and written:
            at = _whole(written, rng.randrange(len(written)))
            editor.replace(at, _whole(written, at + rng.randrange(4)), rng.choice(["", "x", "😋", "\n    ", "()", "'"]))
        elif kind < 0.6 and written:
            cursor = editor.buffer.cursor
            editor.delete(cursor - _whole(written, max(0, cursor - rng.randint(1, 3))))
        elif kind < 0.8:
            editor.undo()
        else:
            editor.type(rng.choice(["\r\n", "\t", "foo bar", "é", "{", "😋😋"]))

    async def _ask(self) -> None:
        asked = self.editor.ask(invoked=self._rng.random() < 0.05)
        self._asked.append(asked)
        if self._rng.random() < 0.3:
            given_up = self._asked.pop(self._rng.randrange(len(self._asked)))
            self.editor.cancel(given_up)
            # It is answered with an error, or was answered before.
            given_up.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        if len(self._asked) > 3 or self._rng.random() < 0.3:
            await self._settle()
        # Bytes that were written go out, and answers come in.
        await asyncio.sleep(0)

    async def _settle(self) -> None:
        waiting, self._asked = self._asked, []
        for asked in waiting:
            try:
                async with asyncio.timeout(WAIT_S):
                    result = await asked.answer
            except JsonRpcException as error:
                self.figures.errors.append(str(error))
                continue
            self.figures.answers += 1
            if asked is waiting[-1]:
                self.figures.ms.append((time.perf_counter() - asked.at_s) * 1000)
            for ghost in self.editor.ghosts(asked, result):
                self.figures.suggestions += 1
                self.figures.stale += ghost.version != asked.buffer.version


def _whole(text: str, offset: int) -> int:
    """An offset as an editor has it: never inside a line break of two characters, nor behind the text."""
    offset = min(offset, len(text))
    return offset - (text[max(0, offset - 1) : offset + 1] == "\r\n")


def window(
    place: Home, model: str, stderr: IO[bytes], **settings: Any
) -> AbstractAsyncContextManager[ServerConnection]:
    """A language server, initialized."""
    command = [sys.executable, "-m", "dg_lsp", "serve", "--model", model]
    return served(command, place.environment, settings=settings, stderr=stderr)


async def ready(wire: ServerConnection) -> int:
    """Wait until the model is loaded; the engine's process."""
    async with asyncio.timeout(WAIT_S * 2):
        while True:
            told = await wire.request("dg/status", {"engine": True})
            if told["state"] == "ready" and told["engine"].get("loaded_s") is not None:
                return int(told["engine"]["pid"])
            await asyncio.sleep(0.05)


def pss_mib(*pids: int) -> float:
    """Memory of these processes and their children, what they share divided among them."""
    total = 0
    for pid in pids:
        try:
            process = psutil.Process(pid)
            total += sum(each.memory_full_info().pss for each in (process, *process.children(recursive=True)))
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


def complaints(place: Home, stderr: IO[bytes]) -> list[str]:
    """What servers and engine wrote that tells of a defect."""
    stderr.seek(0)
    lines = [*stderr.read().decode(errors="replace").splitlines(), *place.log().splitlines()]
    return [line for line in lines if "Traceback" in line or "ERROR" in line or "CRITICAL" in line]
