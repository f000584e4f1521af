"""Start, load and resident memory of both processes; what lies between a request and the model."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil

from engine.common.client import Exchange, conversation
from engine.common.errors import EngineError
from engine.common.messages import Fill, StatusQuery, StatusReply, Warm
from engine.common.names import rooted
from engine.common.processes import python_module
from engine.common.request import FillRequest
from engine.fill.loading import load
from engine.fill.pipeline import fill
from engine.lab.bench.timing import Figure, Ratio, Stopwatch, spread
from engine.server.launch import spawned, start
from engine.server.settings import EngineOptions, write_options
from engine.server.stopping import stop

STARTS, OVERHEAD = "start", "protocol"
_CODE = "def add(a, b):\n    total = ▮a + b▮\n    return total\n"
_ANSWER_S = 120.0
_CLIENT = {"processId": None, "rootUri": None, "capabilities": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMemory:
    """Resident."""

    process: str
    nbytes: int


def starts(model: str, device: str, repetitions: int) -> tuple[list[Figure], list[ProcessMemory]]:
    """Of the language server until it answers, of the engine until its welcome, and until the weights are there."""
    taken: dict[str, list[float]] = {"language server answers": [], "engine welcomes": [], "weights are loaded": []}
    memory: dict[str, int] = {}
    for _ in range(repetitions):
        began = time.perf_counter()
        with _language_server() as server:
            server.request("initialize", _CLIENT)
            taken["language server answers"].append((time.perf_counter() - began) * 1000)
            # Without `initialized` it starts no engine; this answer comes from the server proper, all of it imported.
            server.request("shutdown", None)
            memory["language server"] = psutil.Process(server.process.pid).memory_info().rss
        with own_engine(model, device) as (ask, start_ms):
            taken["engine welcomes"].append(start_ms)
            began = time.perf_counter()
            ask(Warm(id=1))
            taken["weights are loaded"].append((time.perf_counter() - began) * 1000)
            report = ask(StatusQuery(id=2))
            assert isinstance(report, StatusReply)
            memory["engine with its weights"] = report.status.rss_nbytes
            if report.status.device_nbytes:
                memory["engine, on the GPU"] = report.status.device_nbytes
    return [Figure(part=STARTS, name=name, spread=spread(times)) for name, times in taken.items()], [
        ProcessMemory(process=process, nbytes=nbytes) for process, nbytes in memory.items()
    ]


def first_suggestion(repetitions: int) -> Figure:
    """From `initialize` to the answer to a request that waits for it, where no engine runs: files are cached by the
    system."""
    return Figure(
        part=STARTS, name="first suggestion", spread=spread([_first_suggestion() for _ in range(repetitions)])
    )


def overhead(watch: Stopwatch) -> tuple[list[Figure], list[Ratio]]:
    """The same fill by a model that knows the answer: in this process, through the engine's socket and by HTTP."""
    before, _, after = _CODE.split("▮")
    request = FillRequest(prefix=before, suffix=after, language="python")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps({"cases": [{"text": _CODE}]}))
        file.flush()
        name = f"oracle:{file.name}"
        model = load(name).model
        within = watch.time(lambda: fill(model, request))
        with own_engine(name, "cpu") as (ask, _):
            ask(Warm(id=1))
            through = watch.time(lambda: ask(Fill(id=2, request=request)))
            report = ask(StatusQuery(id=3))
            assert isinstance(report, StatusReply)
            with _posting(report.status.http, before, after) as post:
                by_http = watch.time(post)
    figures = {"fill in this process": within, "fill through the engine": through, "fill by HTTP": by_http}
    added = [
        Ratio(name="milliseconds that the engine's process adds to a fill", value=through.median - within.median),
        Ratio(name="milliseconds that HTTP adds to that", value=by_http.median - through.median),
    ]
    return [Figure(part=OVERHEAD, name=each, spread=taken) for each, taken in figures.items()], added


@contextmanager
def _posting(address: str, before: str, after: str) -> Generator[Callable[[], None]]:
    """What asks for a fill by HTTP, on a connection that stays open."""
    connection = HTTPConnection(address, timeout=_ANSWER_S)
    body = json.dumps({"prompt": before, "suffix": after, "language": "python"})

    def post() -> None:
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["choices"][0]["text"] == "a + b"

    try:
        yield post
    finally:
        connection.close()


@contextmanager
def own_engine(model: str, device: str) -> Generator[tuple[Exchange, float]]:
    """An engine apart from the user's own, ended with the block: a connection to it that stays open, as an editor's
    does, and how many milliseconds it took to answer. Raises EngineError where it does not start."""
    with _own_places():
        began = time.perf_counter()
        named = rooted(model, Path.cwd())
        options = EngineOptions(model=named, device=device, unload_after_s=600.0, exit_after_s=60.0, http="127.0.0.1:0")
        process = start(lambda said: spawned(write_options(options), said))
        start_ms = (time.perf_counter() - began) * 1000
        assert process
        try:
            with conversation(_ANSWER_S) as ask:
                assert ask
                yield ask, start_ms
        finally:
            process.kill()
            process.wait()


@contextmanager
def _own_places() -> Generator[None]:
    # Not a longer path: a socket's has a limit.
    with tempfile.TemporaryDirectory(prefix="dg-", ignore_cleanup_errors=True) as folder:
        before = dict(os.environ)
        os.environ.update({"DG_LSP_RUNTIME_DIR": f"{folder}/run", "DG_LSP_STATE_DIR": f"{folder}/state"})
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _first_suggestion() -> float:
    """Milliseconds."""
    before, _, after = _CODE.split("▮")
    document = {"uri": "file:///nowhere/a.py", "languageId": "python", "version": 1, "text": before + after}
    place = {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}
    asked = {"textDocument": {"uri": document["uri"]}, "position": place, "context": {"triggerKind": 1}}
    with _own_places(), _language_server() as server:
        began = time.perf_counter()
        server.request("initialize", _CLIENT)
        server.say("initialized", {})
        server.say("textDocument/didOpen", {"textDocument": document})
        while not server.request("textDocument/inlineCompletion", asked)["result"]:
            pass
        ms = (time.perf_counter() - began) * 1000
        stop()
    return ms


class _Server:
    """The language server, as an editor meets it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def say(self, method: str, params: object, **more: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def request(self, method: str, params: object) -> dict[str, Any]:
        """Its answer; what it says or asks meanwhile is passed over."""
        self.say(method, params, id=method)
        while (message := self._read()).get("id") != method or "method" in message:
            pass
        return message

    def _read(self) -> dict[str, Any]:
        stdout = self.process.stdout
        assert stdout
        header = stdout.readline()
        if not header.lower().startswith(b"content-length:"):
            raise EngineError("The language server to be measured did not answer: see `dg-lsp doctor`.")
        while stdout.readline().strip():
            pass
        return json.loads(stdout.read(int(header.split(b":")[1])))


@contextmanager
def _language_server() -> Generator[_Server]:
    command = [*python_module("dg_lsp"), "serve"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield _Server(process)
    finally:
        process.kill()
        process.communicate()
