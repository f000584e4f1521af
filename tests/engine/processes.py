"""Real engines in real processes for tests, and a client that may break every rule."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.common.frames import FrameSplitter
from engine.common.messages import (
    Drafted,
    EngineMessage,
    EngineStatus,
    Fill,
    Hello,
    Notice,
    StatusQuery,
    StatusReply,
    Stop,
    Welcome,
)
from engine.common.protocol import VERSION, pack, unpack_from_engine
from engine.common.request import FillRequest

_OTHER_VERSION = """
import runpy, sys
import engine.common.protocol
engine.common.protocol.VERSION = int(sys.argv.pop(1))
runpy.run_module("engine", run_name="__main__", alter_sys=True)
"""
"""The engine as it was before a message changed, or will be."""
_OTHER_PACKAGE = """
import runpy, sys
import engine.common.version
engine.common.version.__version__ = sys.argv.pop(1)
runpy.run_module("engine", run_name="__main__", alter_sys=True)
"""
"""The engine of another release that speaks the same protocol."""

WAIT_S = 60.0
"""For anything; a bound for machines that are busy, not a wait."""


def wait_until(holds: Callable[[], Any], what: str, timeout_s: float = WAIT_S) -> Any:
    """The first true value of `holds`; fails with `what` when none comes."""
    ends = time.monotonic() + timeout_s
    while not (value := holds()):
        assert time.monotonic() < ends, f"waited {timeout_s} s in vain for {what}"
        time.sleep(0.02)
    return value


class Wire:
    """A client by hand: sends messages or any bytes, reads messages, waits for none of it longer than WAIT_S."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._splitter = FrameSplitter()
        self._bodies: Iterator[bytes] = iter(())

    def send(self, message: Any) -> None:
        self.socket.sendall(pack(message))

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def handshake(self, client: str = "test", package: str = "") -> Welcome:
        self.send(Hello(version=VERSION, client=client, package=package))
        welcome = self.receive()
        assert isinstance(welcome, Welcome), welcome
        return welcome

    def receive(self) -> EngineMessage:
        """The next message; EOFError when the engine has closed the connection."""
        while (body := next(self._bodies, None)) is None:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._bodies = self._splitter.feed(data)
        return unpack_from_engine(body)

    def reply(self, id: int | None) -> EngineMessage:
        """The reply to one request; notices and others' replies are passed over."""
        while True:
            message = self.receive()
            if not isinstance(message, Notice | Drafted | Welcome) and message.id == id:
                return message

    def draft(self, id: int) -> Drafted:
        """The next draft of one request."""
        while True:
            message = self.receive()
            if isinstance(message, Drafted) and message.id == id:
                return message

    def fill(self, id: int, prefix: str, suffix: str = "\n", **fields: Any) -> None:
        """Ask for a fill; `fields` are those of `Fill`, and `n`."""
        request = FillRequest(prefix=prefix, suffix=suffix, n=fields.pop("n", 1))
        self.send(Fill(id=id, request=request, **fields))

    def status(self) -> EngineStatus:
        self.send(StatusQuery(id=10**9))
        report = self.reply(10**9)
        assert isinstance(report, StatusReply)
        return report.status

    def closed_by_engine(self) -> bool:
        """Whether the engine closes the connection, whatever it says before."""
        try:
            while True:
                self.receive()
        except (EOFError, ConnectionResetError):
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self.socket.close()


class Home:
    """A place for one engine, apart from the user's own and from other tests'."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.runtime = folder / "run"
        self.logs = folder / "state" / "log"
        self.socket_path = self.runtime / "engine.sock"
        self.environment = {
            **os.environ,
            "DG_LSP_RUNTIME_DIR": str(self.runtime),
            "DG_LSP_STATE_DIR": str(folder / "state"),
            "OMP_NUM_THREADS": "1",
            **environment,
        }

    def oracle(self, *cases: dict[str, Any] | str) -> str:
        """The name of an oracle with these cases."""
        path = self.folder / "oracle.json"
        path.write_text(json.dumps({"cases": [{"text": case} if isinstance(case, str) else case for case in cases]}))
        return f"oracle:{path}"

    def command(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """`dg-lsp engine ARGUMENTS`, run to its end."""
        return subprocess.run(
            self._argv(arguments),
            env=self.environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

    def popen(self, *arguments: str, version: int = VERSION, package: str = "") -> subprocess.Popen[str]:
        """`dg-lsp engine ARGUMENTS`, under way; `version`: of its protocol, `package`: of dg-lsp."""
        return subprocess.Popen(
            self._argv(arguments, version, package),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def status(self) -> dict[str, Any] | None:
        """What `status --json` says."""
        return json.loads(self.command("status", "--json").stdout)

    def connect(self) -> Wire:
        """A connection that has not said hello yet."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(WAIT_S)
        try:
            sock.connect(str(self.socket_path))
        except OSError:
            sock.close()
            raise
        return Wire(sock)

    def answers(self) -> bool:
        """Whether an engine listens."""
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """End the engine, if one runs, without a command's start-up time."""
        if self.answers():
            with self.client() as wire:
                wire.send(Stop(id=1))
                assert wire.closed_by_engine()
            wait_until(lambda: not self.socket_path.exists(), "the engine to end")

    @contextmanager
    def client(self, name: str = "test") -> Iterator[Wire]:
        """A connection whose handshake is done."""
        wire = self.connect()
        try:
            wire.handshake(name)
            yield wire
        finally:
            wire.close()

    def log(self) -> str:
        path = self.logs / "engine.log"
        return path.read_text() if path.exists() else ""

    def _argv(self, arguments: tuple[str, ...], version: int = VERSION, package: str = "") -> list[str]:
        engine = ["-m", "engine"] if version == VERSION else ["-c", _OTHER_VERSION, str(version)]
        engine = ["-c", _OTHER_PACKAGE, package] if package else engine
        return [sys.executable, *engine, *arguments]


@contextmanager
def home(**environment: str) -> Iterator[Home]:
    """A home whose engine, if one runs at the end, is stopped."""
    # Not pytest's own folder, whose path may be longer than a socket's may be.
    folder = Path(tempfile.mkdtemp(prefix="dg-"))
    place = Home(folder, **environment)
    try:
        yield place
    finally:
        place.stop()
        shutil.rmtree(folder, ignore_errors=True)


as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may change owners")

_OTHER_USER = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
os.setgid(12345)
os.setuid(12345)
listening.listen()
print("listening", flush=True)
connection, _ = listening.accept()
print(connection.recv(1000).decode(errors="replace"), flush=True)
"""


@contextmanager
def served_by_another(place: Home) -> Iterator[Callable[[], str]]:
    """The engine's socket in the hands of another user; yields what tells all that the first caller said to it."""
    place.runtime.mkdir(mode=0o700)
    command = [sys.executable, "-c", _OTHER_USER, str(place.socket_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        try:
            yield lambda: process.communicate(timeout=WAIT_S)[0].strip()
        finally:
            process.kill()
            place.socket_path.unlink()


@contextmanager
def running(place: Home, *arguments: str, version: int = VERSION, package: str = "") -> Iterator[subprocess.Popen[str]]:
    """An engine in the foreground, answering; its model is one that is never there, unless another is named."""
    if "--model" not in arguments:
        # Any other would have torch imported at once, which takes longer than most tests.
        arguments = ("--model", "oracle:/none.json", *arguments)
    process = place.popen("run", *arguments, version=version, package=package)
    try:
        wait_until(lambda: place.answers() or process.poll() is not None, "the engine to listen")
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)
