"""An engine that is stopped in the middle of its life, and the many who want something of it then."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli.answers import answer
from engine.common import client
from engine.common.request import FillRequest
from tests.engine.processes import WAIT_S, Home, home, running, wait_until

WAY_OUT = "The engine does not answer: `dg-lsp engine restart` replaces it."


@pytest.fixture
def place() -> Iterator[Home]:
    with home() as place:
        yield place


@pytest.fixture
def model(place: Home) -> str:
    return place.oracle("x = ▮1▮\n")


@contextlib.contextmanager
def crowd(place: Home) -> Iterator[None]:
    """As many as can wait to be met; nobody else is told even that he waits."""
    with contextlib.ExitStack() as stack:
        while True:
            sock = stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.setblocking(False)
            try:
                sock.connect(str(place.socket_path))
            except BlockingIOError:
                break
        yield


@pytest.mark.parametrize("crowded", [False, True], ids=["room", "a full backlog"])
def test_commands_to_a_stopped_engine_name_the_way_out_and_restart_takes_it(place: Home, model: str, crowded: bool):
    with running(place, "--model", model) as process, contextlib.ExitStack() as stack:
        process.send_signal(signal.SIGSTOP)
        if crowded:
            stack.enter_context(crowd(place))
        status = place.command("status")
        assert status.stderr.strip().endswith(WAY_OUT)
        second = place.command("run", "--detach", "--model", model)
        assert second.stderr.strip().endswith(WAY_OUT)
        restarted = place.command("restart", "--model", model)
        assert restarted.stdout.strip() == "The engine runs."
        assert process.wait(WAIT_S) == -signal.SIGKILL
        assert place.status()


def test_a_stopped_engine_with_a_full_backlog_is_ended_by_stop(place: Home, model: str):
    with running(place, "--model", model) as process:
        process.send_signal(signal.SIGSTOP)
        with crowd(place):
            assert place.command("stop").stdout.strip() == "The engine has stopped."
        assert process.wait(WAIT_S) == -signal.SIGKILL
        assert place.command("stop").stdout.strip() == "No engine is running."


def test_the_holder_of_the_lock_is_ended_though_it_has_no_socket(place: Home, model: str):
    """As one that hangs before it listens, or at its end."""
    with running(place, "--model", model) as process:
        process.send_signal(signal.SIGSTOP)
        place.socket_path.unlink()
        assert place.command("restart", "--model", model).stdout.strip() == "The engine runs."
        assert process.wait(WAIT_S) == -signal.SIGKILL


def test_a_fill_takes_one_connection(place: Home, model: str, monkeypatch: pytest.MonkeyPatch):
    made: list[object] = []
    connect = client._connect
    monkeypatch.setattr(client, "_connect", lambda *told: made.append(told) or connect(*told))
    for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
        monkeypatch.setenv(name, place.environment[name])
    with running(place, "--model", model) as process:
        request = FillRequest(prefix="x = ", suffix="\n")
        assert answer(request, None, None, engine=True).filled.candidates[0].text == "1"
        assert len(made) == 1
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(client.NoAnswer, match="engine restart"):
            answer(request, None, None, engine=True)
        assert len(made) == 2
        process.send_signal(signal.SIGCONT)


def test_an_engine_opens_as_many_files_as_the_system_lets_it(place: Home, model: str):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 1024:
        pytest.skip("the system lets a process have few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        with running(place, "--model", model), contextlib.ExitStack() as stack:
            assert len([stack.enter_context(place.client()) for _ in range(60)]) == 60
            pid = place.status()["pid"]
            assert resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] > 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_fills_to_a_stopped_engine_lock_nobody_out(place: Home, model: str, tmp_path: Path):
    """Three of them filled the backlog before."""
    source = tmp_path / "a.py"
    source.write_text("x = \n")
    with running(place, "--model", model) as process:
        process.send_signal(signal.SIGSTOP)
        command = [sys.executable, "-m", "dg_lsp", "fill", str(source), "--at", "1:5"]
        fills = [
            subprocess.Popen(command, env=place.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        for each in fills:
            assert WAY_OUT in each.communicate(timeout=WAIT_S)[1]
            assert each.returncode
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: place.status(), "the engine to answer again")
        assert process.poll() is None
