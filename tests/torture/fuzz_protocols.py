"""Part (c), protocols: a real language server and a real engine, sent almost proper messages and asked how they are."""

from __future__ import annotations

import json
import queue
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgpack

from dg_lsp.protocol.framing import frame, messages
from engine.common.frames import unframe
from engine.common.messages import Analyze, Cancel, Fill, Hello, StatusQuery, Warm
from engine.common.protocol import VERSION, pack
from engine.common.request import FillRequest, RecentEdit, Snippet
from tests.engine.processes import Home, home, running
from tests.torture.mutation import mutated, sentence, torn
from tests.torture.target import Example

_CASE = "x = ▮1▮\n"
_GONE_S = 60.0
_DOCUMENT = {"uri": "file:///w/a.py", "languageId": "python", "version": 1, "text": "x = \ndef f():\n    pass\n"}
_AT = {"textDocument": {"uri": _DOCUMENT["uri"]}, "position": {"line": 0, "character": 4}}
_RANGE = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
_CHANGE = {"range": _RANGE, "text": "y = 😋\r\n"}
_COMPLETE = {"triggerKind": 2, "selectedCompletionInfo": {"range": _RANGE, "text": "x"}}
_ACTION = {**_AT, "range": _RANGE, "context": {"diagnostics": [], "only": ["source.fixAll"]}}
_MESSAGES: tuple[dict[str, Any], ...] = (
    {"method": "textDocument/didOpen", "params": {"textDocument": _DOCUMENT}},
    {"method": "textDocument/didChange", "params": {**_AT, "contentChanges": [_CHANGE, {"text": "x = "}]}},
    {"method": "textDocument/didClose", "params": _AT},
    {"id": 1, "method": "textDocument/inlineCompletion", "params": {**_AT, "context": _COMPLETE}},
    {"id": 2, "method": "textDocument/completion", "params": _AT},
    {"id": 3, "method": "textDocument/codeAction", "params": _ACTION},
    {"id": 4, "method": "workspace/executeCommand", "params": {"command": "dg.fillHere", "arguments": [_AT]}},
    {"id": 5, "method": "dg/status", "params": {"uri": _DOCUMENT["uri"]}},
    {"method": "workspace/didChangeConfiguration", "params": {"settings": {"dg-lsp": {"inline": {"threshold": 0.4}}}}},
    {"method": "$/cancelRequest", "params": {"id": 1}},
    {"id": 1, "result": None},
)
_TOML = ("a", ".", "[", "]", "=", '"', "'''", "\n", "1", "e9", "#", "{", ",", "inline", "threshold", "engine", "\\u")
_IGNORE = ("*", "?", "**", "/", "!", "[a-z]", "[", "]", "\\", "a", "py", "\n", " ", "#", ".", "é", "+")


class Editor:
    """A client of a language server that believes nothing it hears."""

    def __init__(self, place: Home) -> None:
        command = [sys.executable, "-m", "dg_lsp", "serve"]
        self.errors = (place.folder / "errors").open("wb")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=place.environment, stdin=pipe, stdout=pipe, stderr=self.errors)
        self._heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._asked = 0
        threading.Thread(target=self._listen, daemon=True).start()
        hello = {"processId": None, "rootUri": None, "capabilities": {"workspace": {"workspaceFolders": True}}}
        options = {"inline": {"deadline_ms": 100}, "stats": False}
        self.ask("initialize", {**hello, "initializationOptions": options})
        self.tell("initialized", {})

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def tell(self, method: str, params: Any) -> None:
        self.write(frame(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()))

    def ask(self, method: str, params: Any) -> Any:
        """The answer; raises where none comes."""
        self._asked += 1
        number = f"asked-{self._asked}"
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.write(frame(json.dumps(request).encode()))
        while True:
            heard = self._heard.get(timeout=_GONE_S)
            if isinstance(heard, dict) and heard.get("id") == number:
                return heard

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for body in messages(self.process.stdout):
            self._heard.put(json.loads(body))


@contextmanager
def _edited() -> Generator[tuple[Editor, Home]]:
    with home() as place, running(place, "--model", place.oracle(_CASE)):
        editor = Editor(place)
        try:
            # The first of each imports what the others find.
            editor.tell("textDocument/didOpen", {"textDocument": _DOCUMENT})
            editor.ask("textDocument/inlineCompletion", {**_AT, "context": {"triggerKind": 1}})
            editor.ask("dg/status", {})
            yield editor, place
        finally:
            editor.close()


@contextmanager
def language_server(chance: random.Random) -> Generator[Example]:
    """JSON-RPC and its frames."""
    with _edited() as (editor, _):

        def example(found: Any) -> None:
            sent = [_framed(chance) for _ in range(chance.randint(1, 6))]

            def work() -> None:
                for data in sent:
                    editor.write(data)
                # Whatever a wrong length still waits for is in here.
                editor.write(b"\n" * (8192 + sum(map(len, sent))))
                editor.ask("dg/status", {})

            found.attempt(work, (), sent)

        yield example


def _framed(chance: random.Random) -> bytes:
    message = {"jsonrpc": "2.0", **chance.choice(_MESSAGES)}
    body = json.dumps(mutated(message, chance)).encode()
    if chance.random() < 0.2:
        body = torn(body, chance)
    if chance.random() < 0.8:
        return frame(body)
    length = max(len(body) + chance.choice((-9, -1, 1, 9, 4000)), 0)
    header = chance.choice(("Content-Length: {}", "content-length:{}", "X: {}", "Content-Length: {}\r\nX: y", "\r\n{}"))
    return header.format(length).encode() + chance.choice((b"\r\n\r\n", b"\n\n", b"\r\n")) + body


@contextmanager
def project_files(chance: random.Random) -> Generator[Example]:
    """dg-lsp.toml and ignore files of a workspace, behind a real server."""
    with _edited() as (editor, place):
        count = 0

        def example(found: Any) -> None:
            nonlocal count
            count += 1
            folder = place.folder / f"w{count}"
            (folder / "inner").mkdir(parents=True)
            (folder / ".git").mkdir()
            said = {
                "dg-lsp.toml": sentence(_TOML, chance, 40),
                ".gitignore": sentence(_IGNORE, chance),
                ".dgignore": sentence(_IGNORE, chance),
                "inner/.gitignore": sentence(_IGNORE, chance),
            }
            for name, text in said.items():
                (folder / name).write_text(text)
            uri = (folder / "inner" / ("a" * 35 + ".py")).as_uri()

            def work() -> None:
                added = {"added": [{"uri": folder.as_uri(), "name": "w"}], "removed": []}
                editor.tell("workspace/didChangeWorkspaceFolders", {"event": added})
                editor.tell("textDocument/didOpen", {"textDocument": {**_DOCUMENT, "uri": uri}})
                editor.ask("dg/status", {"uri": uri})
                editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
                removed = {"added": [], "removed": [{"uri": folder.as_uri(), "name": "w"}]}
                editor.tell("workspace/didChangeWorkspaceFolders", {"event": removed})

            found.attempt(work, (), said)
            # At the end, thousands of them would take longer than a target is waited for.
            shutil.rmtree(folder)

        yield example


_REQUEST = FillRequest(
    prefix="x = ",
    suffix="\n",
    language="python",
    old="1",
    guess="1",
    snippets=(Snippet(path="b.py", text="y = 1\n"),),
    edits=(RecentEdit(path="b.py", old="y = 1", new="z = 1"),),
    deadline_ms=100.0,
    keep=((0, 1),),
)
_FRAMES = tuple(
    unframe(pack(message)[4:])
    for message in (
        Hello(version=VERSION, client="torture"),
        Fill(id=1, request=_REQUEST, document="a", drafts=True),
        Analyze(id=2, text="def f(:\n", cursor=3, language="python"),
        Warm(id=3),
        Cancel(id=1),
        StatusQuery(id=4),
    )
)


@contextmanager
def engine(chance: random.Random) -> Generator[Example]:
    """msgpack and its frames; another client watches."""
    with home() as place, running(place, "--model", place.oracle(_CASE)), place.client("watch") as watch:
        watch.fill(1, "x = ")
        watch.reply(1)

        def example(found: Any) -> None:
            sent = [_packed(chance) for _ in range(chance.randint(1, 5))]

            def work() -> None:
                with place.client("torture") as wire:
                    for data in sent:
                        try:
                            wire.send_bytes(data)
                        except (BrokenPipeError, ConnectionResetError):
                            break  # turned away, as it should be
                watch.status()

            found.attempt(work, (), sent)

        yield example


def _packed(chance: random.Random) -> bytes:
    tree = mutated(chance.choice(_FRAMES), chance)
    try:
        body = msgpack.packb(tree)
    except (OverflowError, ValueError, UnicodeEncodeError, RecursionError):
        body = msgpack.packb(chance.choice(_FRAMES))
    body = torn(body, chance) if chance.random() < 0.3 else body
    length = max(len(body) + chance.choice((0, 0, 0, 0, 1, -1, 2**31)), 0)
    return length.to_bytes(4, "big") + body


TARGETS: dict[str, Callable[[random.Random], Any]] = {
    "language server": language_server,
    "project files": project_files,
    "engine": engine,
}
