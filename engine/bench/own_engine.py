"""An engine of our own for a measurement, and a connection to it that stays open, as an editor's does."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.core.errors import EngineError
from engine.core.processes import python_module
from engine.ipc.frames import FrameSplitter
from engine.ipc.messages import ClientMessage, Drafted, EngineMessage, Failed, Hello, Notice, Welcome
from engine.ipc.protocol import VERSION, pack, unpack_from_engine

_PATIENCE_S = 120.0


@dataclass(slots=True, kw_only=True)
class Line:
    """One client's connection."""

    sock: socket.socket
    splitter: FrameSplitter
    bodies: Iterator[bytes]

    def ask(self, message: ClientMessage) -> EngineMessage:
        """A message's reply. Raises EngineError for a refusal, or where the engine is gone or silent."""
        try:
            self.sock.sendall(pack(message))
            reply = self._next()
        except OSError as error:
            raise EngineError(f"The engine under measurement does not answer ({error}): try again.") from None
        if isinstance(reply, Failed):
            raise EngineError(reply.message)
        return reply

    def _next(self) -> EngineMessage:
        while True:
            while (body := next(self.bodies, None)) is None:
                data = self.sock.recv(1 << 16)
                if not data:
                    raise ConnectionResetError("it closed the connection")
                self.bodies = self.splitter.feed(data)
            message = unpack_from_engine(body)
            if not isinstance(message, Notice | Drafted):
                return message


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An engine of our own, which answered."""

    line: Line
    pid: int
    start_ms: float
    """From its start until it greeted."""


@contextmanager
def own_engine(model: str, device: str) -> Generator[Running]:
    """An engine apart from the user's own, ended with the block. Raises EngineError where it does not start."""
    if sys.platform == "win32":
        raise EngineError("Processes are not measured on Windows: leave that part out.")
    # Not a longer path: a socket's has a limit.
    folder = Path(tempfile.mkdtemp(prefix="dg-"))
    places = {"DG_LSP_RUNTIME_DIR": str(folder / "run"), "DG_LSP_STATE_DIR": str(folder / "state")}
    began = time.perf_counter()
    process = subprocess.Popen(
        [*python_module("engine"), "run", "--model", model, "--device", device],
        env={**os.environ, **places},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with _connected(folder / "run" / "engine.sock", process) as line:
            greeting = line.ask(Hello(version=VERSION, client="bench"))
            assert isinstance(greeting, Welcome)
            yield Running(line=line, pid=process.pid, start_ms=(time.perf_counter() - began) * 1000)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _connected(path: Path, process: subprocess.Popen[bytes]) -> Generator[Line]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(_PATIENCE_S)
        ends = time.monotonic() + _PATIENCE_S
        while sock.connect_ex(str(path)):
            if process.poll() is not None or time.monotonic() > ends:
                raise EngineError("The engine to be measured did not start: see `dg-lsp doctor`.")
            time.sleep(0.005)
        yield Line(sock=sock, splitter=FrameSplitter(), bodies=iter(()))
