"""An engine that begins as a copy of its starter; what it says and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.engine.processes import WAIT_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="an engine is a copy of its starter on Linux alone")

STARTER = """
import os, sys, tempfile
from engine.server.forked import ForkedEngine
said = tempfile.TemporaryFile()
"""


def started(script: str, ready: str = "", **more: Any) -> subprocess.CompletedProcess[str]:
    """What a starter printed, whose engine does what the script says; it has one thread alone, unlike a test. `ready`:
    what it does first."""
    command = [sys.executable, "-c", f"{ready}\n{STARTER}{script}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False, **more)


def test_it_has_a_session_of_its_own_and_none_of_the_streams():
    ran = started("""
def run():
    print("to nobody", flush=True)
    os.write(2, repr((os.getsid(0) == os.getpid(), os.getcwd(), sys.stdin.read())).encode())
    return 3

engine = ForkedEngine(run, said)
code = engine.wait(60)
said.seek(0)
print(code, engine.poll(), said.read().decode())
""")
    assert (ran.stdout, ran.stderr) == ("3 3 (True, '/', '')\n", "")


def test_an_error_is_what_it_said_last():
    ran = started("""
engine = ForkedEngine(lambda: 1 // 0, said)
code = engine.wait(60)
said.seek(0)
print(code, said.read().decode().splitlines()[-1])
""")
    assert (ran.stdout, ran.stderr) == ("1 ZeroDivisionError: integer division or modulo by zero\n", "")


def test_it_is_waited_for_and_killed():
    ran = started("""
import subprocess, time
engine = ForkedEngine(lambda: time.sleep(600), said)
print(engine.poll())
try:
    engine.wait(0.1)
except subprocess.TimeoutExpired:
    print("not yet")
engine.kill()
print(engine.wait(60))
engine.kill()
""")
    assert (ran.stdout, ran.stderr) == (f"None\nnot yet\n{-signal.SIGKILL}\n", "")


def test_what_the_starter_holds_does_not_hold_up_who_started_it():
    """A language server reads its starter's standard error to the end, which the engine must not keep open."""
    ran = started("""
import time
engine = ForkedEngine(lambda: time.sleep(600), said)
print(engine.pid)
""")
    os.kill(int(ran.stdout), signal.SIGKILL)
    assert ran.returncode == 0


ERROR = """
engine = ForkedEngine(lambda: 1 // 0, said)
code = engine.wait(60)
said.seek(0)
os.write(2, f"{code} {said.read().decode().splitlines()[-1]}".encode())
"""


@pytest.mark.parametrize(
    "ready", ["import os; os.close(0)", "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"]
)
def test_how_it_ended_is_known_whatever_the_starter_began_with(ready: str):
    """It may have no standard input, whose number another file has then, or heed no ends of children."""
    assert started(ERROR, ready).stderr == "1 ZeroDivisionError: integer division or modulo by zero"


def test_what_else_was_open_is_closed():
    reading, writing = os.pipe()
    ran = started("import time; print(ForkedEngine(lambda: time.sleep(600), said).pid)", pass_fds=[writing])
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b""
    os.kill(int(ran.stdout), signal.SIGKILL)


def test_ctrl_c_at_its_beginning_leaves_none():
    ran = started("""
import signal, time
fork = os.fork
# Tests that run in the background ignore it, and so would what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupted():
    pid = fork()
    if pid:
        print(pid, flush=True)
        signal.raise_signal(signal.SIGINT)
    return pid

os.fork = interrupted
try:
    ForkedEngine(lambda: time.sleep(600), said)
except KeyboardInterrupt:
    print("interrupted")
""")
    pid, word = ran.stdout.split()
    assert word == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
