"""(e) Start, load and resident memory of both processes; (f) what lies between a request and the model."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass

import psutil

from engine.bench.own_engine import own_engine
from engine.bench.timing import Figure, Ratio, Stopwatch, spread
from engine.core.errors import EngineError
from engine.core.processes import python_module
from engine.core.request import FillRequest
from engine.infill.pipeline import fill
from engine.ipc.messages import Fill, StatusQuery, StatusReply, Warm
from engine.loader.loading import load

STARTS, OVERHEAD = "start", "protocol"
_CODE = "def add(a, b):\n    total = ▮a + b▮\n    return total\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident, in bytes."""

    process: str
    nbytes: int


def starts(model: str, device: str, repetitions: int) -> tuple[list[Figure], list[Memory]]:
    """Of the language server until it answers, of the engine until it greets, and until the weights are there."""
    served: list[float] = []
    greeted: list[float] = []
    loaded: list[float] = []
    memory: list[Memory] = []
    for _ in range(repetitions):
        ms, nbytes = _language_server()
        served.append(ms)
        memory = [Memory(process="language server", nbytes=nbytes)]
        with own_engine(model, device) as running:
            greeted.append(running.start_ms)
            began = time.perf_counter()
            running.line.ask(Warm(id=1))
            loaded.append((time.perf_counter() - began) * 1000)
            memory.append(Memory(process="engine with its weights", nbytes=_rss(running.pid)))
            told = running.line.ask(StatusQuery(id=2))
            assert isinstance(told, StatusReply)
            if told.status.device_nbytes:
                memory.append(Memory(process="engine, on the GPU", nbytes=told.status.device_nbytes))
    figures = {"language server answers": served, "engine greets": greeted, "weights are loaded": loaded}
    return [Figure(part=STARTS, name=name, spread=spread(taken)) for name, taken in figures.items()], memory


def overhead(watch: Stopwatch) -> tuple[list[Figure], list[Ratio]]:
    """The same fill by a model that knows the answer, in this process and through the engine's socket."""
    before, _, after = _CODE.split("▮")
    request = FillRequest(prefix=before, suffix=after, language="python")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps({"cases": [{"text": _CODE}]}))
        file.flush()
        name = f"oracle:{file.name}"
        model = load(name).model
        within = watch.time(lambda: fill(model, request))
        with own_engine(name, "cpu") as running:
            running.line.ask(Warm(id=1))
            through = watch.time(lambda: running.line.ask(Fill(id=2, request=request)))
    figures = {"fill in this process": within, "fill through the engine": through}
    added = Ratio(name="milliseconds that the engine's process adds to a fill", value=through.median - within.median)
    return [Figure(part=OVERHEAD, name=each, spread=taken) for each, taken in figures.items()], [added]


def _language_server() -> tuple[float, int]:
    """Milliseconds to its first answer, and its memory once it serves."""
    hello = {"processId": None, "rootUri": None, "capabilities": {}}
    began = time.perf_counter()
    process = subprocess.Popen(
        [*python_module("dg_lsp"), "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        _send(process, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        _receive(process)
        ms = (time.perf_counter() - began) * 1000
        # Without `initialized` it starts no engine; this answer comes from the server proper, all of it imported.
        _send(process, {"jsonrpc": "2.0", "id": 2, "method": "shutdown", "params": None})
        _receive(process)
        return ms, _rss(process.pid)
    finally:
        process.kill()
        process.communicate()


def _send(process: subprocess.Popen[bytes], message: object) -> None:
    assert process.stdin
    body = json.dumps(message).encode()
    process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    process.stdin.flush()


def _receive(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout
    header = process.stdout.readline()
    if not header.lower().startswith(b"content-length:"):
        raise EngineError("The language server to be measured did not answer: see `dg-lsp doctor`.")
    while process.stdout.readline().strip():
        pass
    process.stdout.read(int(header.split(b":")[1]))


def _rss(pid: int) -> int:
    return psutil.Process(pid).memory_info().rss
