"""The engine's life: one at a time, started by whoever, gone when nobody needs it, replaced after any end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from engine.common.address import TcpAddress
from engine.common.challenge import ClientSide, Impostor
from engine.common.errors import EngineError
from engine.common.messages import Analyze, Done, Failed, FillReply, Hello, Notice, Proof, Stop, Warm
from engine.common.processes import python_module
from engine.common.protocol import VERSION
from engine.common.runtime_paths import MAX_SOCKET_PATH_NBYTES
from engine.server import launch
from engine.server.settings import EngineOptions
from tests.engine.processes import WAIT_S, Home, Wire, as_root, home, running, served_by_another, wait_until

TOY = Path(__file__).parents[2] / "models" / "toy-uniform"


@pytest.fixture
def place():
    with home() as place:
        yield place


def pid_of(place: Home) -> int:
    with place.client() as wire:
        return wire.status().pid


def test_a_detached_engine_outlives_its_starter_in_a_session_of_its_own(place):
    assert place.command("run", "--detach").returncode == 0
    pid = pid_of(place)
    assert os.getsid(pid) == pid
    assert psutil.Process(pid).cwd() == "/"


def test_an_engine_that_cannot_start_leaves_no_process_behind(place):
    place.socket_path.mkdir(parents=True)
    result = place.command("run", "--detach")
    assert result.returncode == 2, result
    assert f"{place.runtime} can't be used" in result.stderr
    assert "DG_LSP_RUNTIME_DIR" in result.stderr
    assert result.stderr.count("\n") == 1
    assert processes_of(place) == []
    place.socket_path.rmdir()


def processes_of(place: Home) -> list[int]:
    """Those of engines, without the ones that check syntax for them."""

    def belongs(process: psutil.Process) -> bool:
        checks = "engine.syntax.child" in (process.info["cmdline"] or [])
        return not checks and (process.info["environ"] or {}).get("DG_LSP_RUNTIME_DIR") == str(place.runtime)

    return [process.pid for process in psutil.process_iter(["environ", "cmdline"]) if belongs(process)]


def test_several_starters_at_once_make_one_engine(place):
    starters = [place.popen("run", "--detach") for _ in range(3)]
    for starter in starters:
        out, errors = starter.communicate(timeout=WAIT_S)
        assert starter.returncode == 0, (out, errors)
    assert place.log().count("started:") == 1
    assert processes_of(place) == [pid_of(place)]


@pytest.mark.parametrize("how", [(), ("--detach",)], ids=str)
def test_a_second_engine_leaves_the_first_alone(place, how):
    with running(place) as first:
        second = place.command("run", *how)
        assert (second.returncode, second.stdout.strip()) == (0, "An engine is running already.")
        assert pid_of(place) == first.pid


def test_the_engine_ends_when_no_client_came_for_long_but_not_before(place):
    with running(place, "--exit-after", "1.5") as process:
        with place.client() as wire:
            time.sleep(2.5)
            assert wire.status().clients == ("test",)
        assert process.wait(WAIT_S) == 0
        assert not place.socket_path.exists()


def test_weights_are_given_back_after_a_rest_and_come_back_with_the_next_request(place):
    # One word of 16 MiB: real memory, read in no time.
    name = place.oracle("x = ▮1▮\n", f"▮{'x' * 2**24}▮")
    with running(place, "--model", name, "--unload-after", "0.5"), place.client() as wire:
        wire.send(Warm(id=1))
        assert wire.reply(1) == Done(id=1)
        loaded = wire.status()
        unloaded = wait_until(
            lambda: (status := wire.status()).state.name == "unloaded" and status, "the weights to go"
        )
        assert unloaded.loaded_s is None
        assert loaded.rss_nbytes - unloaded.rss_nbytes > 2**24
        wire.fill(2, "x = ")
        answer = wire.reply(2)
        assert isinstance(answer, FillReply)
        assert answer.filled.candidates[0].text == "1"
        assert answer.filled.ms.load > 0
        assert wire.status().state.name == "ready"


def test_a_hung_model_ends_the_engine_and_tells_its_clients(place):
    name = place.oracle({"text": "x = ▮1▮\n", "delay_ms": 600_000})
    with running(place, "--model", name, "--stall-after", "1") as process:
        with place.client() as wire:
            wire.fill(1, "x = ")
            reply = wire.reply(1)
            assert isinstance(reply, Failed)
            assert (reply.code, "replaced" in reply.message) == ("internal", True)
            assert wire.closed_by_engine()
        assert process.wait(WAIT_S) == 70
    with running(place), place.client() as wire:
        assert wire.status().served == 0


def test_a_hung_load_ends_the_engine_and_tells_its_clients(place):
    never = place.folder / "never.json"
    os.mkfifo(never)
    with running(place, "--model", f"oracle:{never}", "--stall-after", "1") as process:
        with place.client() as wire:
            wire.send(Warm(id=1))
            reply = wire.reply(1)
            assert isinstance(reply, Failed)
            assert (reply.code, "replaced" in reply.message) == ("internal", True)
            assert wire.closed_by_engine()
        assert process.wait(WAIT_S) == 70
    assert "makes no progress" in place.log()


def test_stop_ends_the_engine_and_says_so_to_clients(place):
    with running(place) as process, place.client() as wire:
        assert place.command("stop").stdout.strip() == "The engine has stopped."
        notice = wire.receive()
        assert isinstance(notice, Notice)
        assert notice.state.name == "stopping"
        assert wire.closed_by_engine()
        assert process.wait(WAIT_S) == 0
    assert place.command("stop").stdout.strip() == "No engine is running."


def test_an_engine_with_too_many_clients_can_be_stopped(place):
    with running(place) as process, contextlib.ExitStack() as clients:
        for _ in range(EngineOptions().max_clients):
            clients.enter_context(place.client())
        assert place.command("stop").stdout.strip() == "The engine has stopped."
        assert process.wait(WAIT_S) == -signal.SIGKILL


STARTED = {"model": "oracle:/some.json", "device": "cpu", "unload-after": 33, "exit-after": 77, "stall-after": 44}


@pytest.mark.parametrize(
    "changed",
    [{}, {"model": "oracle:/other.json"}, {"unload-after": 5, "exit-after": 6, "stall-after": 7}],
    ids=str,
)
def test_restart_brings_another_process_that_keeps_what_is_not_changed(place, changed):
    with running(place, *options(STARTED)) as process:
        restarted = place.command("restart", *options(changed))
        assert restarted.returncode == 0, restarted
        assert process.wait(WAIT_S) == 0
        with place.client() as wire:
            status = wire.status()
        assert status.pid != process.pid
        limits = (status.unload_after_s, status.exit_after_s, status.stall_after_s)
        assert (status.model, status.requested_device, *limits) == tuple({**STARTED, **changed}.values())


@pytest.mark.parametrize(
    ("how", "arguments", "message"),
    [
        (("run",), ("--model", "nosuch"), "dg-lsp: There is no model 'nosuch'"),
        (("run", "--detach"), ("--model", "no-one/nothing"), "run `dg-lsp pull no-one/nothing` first"),
        (("restart",), ("--device", "gpu"), "dg-lsp: There is no device 'gpu': use auto, cpu or cuda."),
    ],
)
def test_what_no_engine_could_run_is_refused_before_one_starts(place, how, arguments, message):
    result = place.command(*how, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert not place.answers()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "nosuch"), "There is no model 'nosuch'"),
        (("--http", "0.0.0.0:0"), "put a token into DG_LSP_HTTP_TOKEN"),
        (("--http", "127.0.0.1:0", "--http-token-file", "nosuch"), "can't be read: write the key into it"),
    ],
)
def test_a_restart_that_is_refused_leaves_the_engine_alone(place, arguments, message):
    with running(place) as process:
        refused = place.command("restart", *arguments)
        assert refused.returncode == 2
        assert message in refused.stderr
        assert pid_of(place) == process.pid


def test_a_restart_whose_port_is_taken_leaves_the_engine_alone(place):
    with running(place) as process, socket.create_server(("127.0.0.1", 0)) as taken:
        refused = place.command("restart", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
        assert refused.returncode == 1
        assert "choose another port" in refused.stderr
        place.environment["DG_LSP_HTTP_TOKEN"] = "of-this-test"
        refused = place.command("restart", "--http", "203.0.113.7:8012")
        assert refused.returncode == 2
        assert "is no address of this machine" in refused.stderr
        assert pid_of(place) == process.pid
        restarted = place.command("restart", "--http", "127.0.0.1:0")
        assert restarted.returncode == 0, restarted
        port = (place.status() or {})["http"].rpartition(":")[2]
        assert restarted.stdout == f"The engine runs and serves http://127.0.0.1:{port}.\n"
        assert place.command("restart", "--http", f"localhost:{port}").returncode == 0


def test_a_restart_on_a_gpu_that_is_not_there_leaves_the_engine_alone(place):
    place.environment["CUDA_VISIBLE_DEVICES"] = ""
    with running(place, "--model", place.oracle("x = ▮1▮\n")) as process:
        refused = place.command("restart", "--model", str(TOY), "--device", "cuda")
        assert refused.returncode == 2
        assert "CUDA was asked for, but torch finds no GPU here" in refused.stderr
        assert pid_of(place) == process.pid


def test_where_the_folder_of_a_shell_is_gone_an_engine_starts_and_restarts(place):
    gone = place.folder / "gone"
    gone.mkdir()
    engine = shlex.join([sys.executable, "-m", "engine"])
    script = f'rmdir "$PWD" && {engine} run --detach && {engine} restart'
    said = subprocess.run(
        ["sh", "-c", script], env=place.environment, cwd=gone, capture_output=True, text=True, timeout=WAIT_S
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "The engine runs.\n" * 2, "")


def test_a_relative_name_survives_detaching_and_restarts(place):
    here = {"cwd": TOY.parent}
    assert place.command("run", "--detach", "--model", TOY.name, **here).returncode == 0
    with place.client() as wire:
        assert wire.status().model == str(TOY)
        wire.send(Warm(id=1))
        assert wire.reply(1) == Done(id=1)
    assert place.command("restart", **here).returncode == 0
    with place.client() as wire:
        assert wire.status().model == str(TOY)
    place.oracle("x = ▮1▮\n")
    assert place.command("restart", "--model", "oracle:oracle.json", cwd=place.folder).returncode == 0
    with place.client() as wire:
        assert wire.status().model == f"oracle:{place.folder}/oracle.json"


def options(values: dict[str, object]) -> list[str]:
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1], ids=["older", "newer"])
def test_an_engine_of_another_version_is_named_and_replaced_by_restart(place, version):
    with running(place, version=version) as process:
        shown = place.command("status")
        assert shown.returncode == 1
        assert "another version of dg-lsp. `dg-lsp engine restart` replaces it" in shown.stderr
        restarted = place.command("restart")
        assert restarted.returncode == 0
        assert "does not tell its options; those not given here get their defaults" in restarted.stderr
        assert process.wait(WAIT_S) == -signal.SIGKILL
        with place.client() as wire:
            assert wire.status().protocol == VERSION


@as_root
def test_a_command_says_nothing_to_a_socket_that_another_user_serves(place):
    with served_by_another(place) as said:
        shown = place.command("status")
        assert shown.returncode == 1
        assert "another user; set DG_LSP_RUNTIME_DIR" in shown.stderr
        assert said() == ""


def test_by_default_the_log_is_in_the_platform_s_folder_for_state(place):
    del place.environment["DG_LSP_STATE_DIR"]
    place.environment |= {"HOME": str(place.folder), "XDG_STATE_HOME": str(place.folder / "state")}
    with running(place):
        (log,) = place.folder.rglob("engine.log")
        assert place.status()["log"] == str(log.parent)
        if sys.platform == "linux":
            assert log.parent == place.folder / "state" / "dg-lsp" / "log"


def test_status_without_an_engine_says_so(place):
    shown = place.command("status")
    assert (shown.returncode, shown.stdout.strip()) == (1, "No engine is running.")
    assert place.status() is None


def test_status_is_readable(place):
    with running(place, "--model", "oracle:/some.json", "--stall-after", "44"):
        shown = place.command("status")
    assert shown.returncode == 0
    for word in ("oracle:/some.json", "not loaded", "unloaded", "MiB", "stall after 44 s", "served"):
        assert word in shown.stdout


def test_status_fits_eighty_columns_however_many_windows_there_are(place):
    names = [f"an-editor-of-somebody {number}.0" for number in range(9)]
    with running(place, "--model", place.oracle("x = ▮1▮\n")), contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(place.client(name))
        shown = place.command("status")
    assert "clients   10: " in shown.stdout
    assert all(name in " ".join(shown.stdout.split()) for name in names)
    # A path stays whole, so that it can be clicked on and copied.
    lines = [line for line in shown.stdout.splitlines() if str(place.folder) not in line]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_engine_in_order(place, number):
    with running(place) as process:
        process.send_signal(number)
        assert process.wait(WAIT_S) == 0
        assert not place.socket_path.exists()
    assert place.log().rstrip().endswith("ended")


def test_after_a_kill_the_next_one_starts_over_what_was_left(place):
    with running(place) as process:
        process.kill()
        process.wait(WAIT_S)
        assert place.socket_path.exists()
        with running(place) as another:
            assert pid_of(place) == another.pid


def test_who_says_no_hello_keeps_no_engine(place):
    with running(place, "--exit-after", "0.5") as process:

        def ended() -> bool:
            with contextlib.suppress(OSError):
                place.connect().close()
            return process.poll() is not None

        wait_until(ended, "the engine to end")


def test_a_wedged_engine_is_ended_by_stop(place):
    with running(place) as process:
        process.send_signal(signal.SIGSTOP)
        assert place.command("stop").stdout.strip() == "The engine has stopped."
        assert process.wait(WAIT_S) == -signal.SIGKILL


_NEVER_DONE = """
import re, runpy, sys, time
import engine.server.analyzer
engine.server.analyzer.language_of = lambda *_: {work}
sys.argv[0] = "engine"
runpy.run_module("engine", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    "work", ["time.sleep(600)", "re.match('(a|a)+$', 'a' * 60 + 'b')"], ids=["waits", "holds the interpreter"]
)
def test_stop_ends_the_process_whatever_it_is_at(place, work):
    command = [sys.executable, "-c", _NEVER_DONE.format(work=work), "run"]
    with subprocess.Popen(command, env=place.environment) as process:
        try:
            wait_until(place.answers, "the engine to listen")
            wire = place.connect()
            wire.handshake()
            wire.send(Analyze(id=1, text="x", cursor=0, language="python"))
            # Seen by the loop, and given to its thread, before anything else comes.
            time.sleep(0.5)
            stop = "import time; from engine.server.stopping import stop; began = time.monotonic()"
            stopped = subprocess.run(
                [sys.executable, "-c", f"{stop}; print(stop(), time.monotonic() - began < 2)"],
                env=place.environment,
                capture_output=True,
                text=True,
                check=True,
            )
            assert stopped.stdout.split() == ["True", "True"]
            # The lock was found free; what is left is the process's own end.
            process.wait(1)
            wire.close()
        finally:
            process.kill()


def test_tracebacks_of_crashes_are_kept(place):
    for _ in range(2):
        with running(place) as process:
            process.send_signal(signal.SIGSEGV)
            assert process.wait(WAIT_S) == -signal.SIGSEGV
    with running(place):
        pass
    kept = (place.logs / "engine.crash").read_text()
    assert kept.count("Fatal Python error: Segmentation fault") == 2
    assert kept.count("started: pid") == 3


def test_an_engine_whose_folder_went_away_ends_and_gives_its_port_back(place):
    with running(place, "--http", "127.0.0.1:0") as process:
        with place.client() as wire:
            host, _, port = wire.status().http.rpartition(":")
            # As /run/user does with a user's last session, while what is detached lives on.
            shutil.rmtree(place.runtime)
            assert process.wait(WAIT_S) == 0
        socket.create_server((host, int(port))).close()
    assert "ending: its address is gone" in place.log()


def test_an_engine_that_ends_leaves_the_socket_of_its_successor_alone(place):
    with running(place, "--exit-after", "0.5") as first:
        first.send_signal(signal.SIGSTOP)
        shutil.rmtree(place.runtime)
        with running(place) as second:
            first.send_signal(signal.SIGCONT)
            assert first.wait(WAIT_S) == 0
            assert pid_of(place) == second.pid


def test_a_stale_socket_file_is_in_nobodys_way(place):
    place.runtime.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(place.socket_path))
    with running(place), place.client() as wire:
        assert wire.status().served == 0


@pytest.mark.parametrize("what", ["a file in the way", "a home that can't be written", "a full disk"])
def test_without_a_log_the_engine_serves_and_says_why(place, what):
    match what:
        case "a file in the way":
            place.logs.parent.mkdir(parents=True)
            place.logs.write_text("")
        case "a full disk":
            place.logs.mkdir(parents=True)
            for name in ("engine.log", "engine.crash"):
                (place.logs / name).symlink_to("/dev/full")
        case _:
            # Not even root can make a folder there.
            place.environment |= {"HOME": "/proc/none"}
            for name in ("DG_LSP_STATE_DIR", "XDG_STATE_HOME"):
                place.environment.pop(name, None)
    with running(place, "--model", place.oracle("x = ▮1▮\n")), place.client() as wire:
        wire.fill(1, "x = ")
        answer = wire.reply(1)
        assert isinstance(answer, FillReply)
        state = wire.status().state
        assert state.name == "ready"
        assert re.fullmatch(r"No log is kept\. The folder \S+ can't .*; set DG_LSP_STATE_DIR .*\.", state.message)
        assert wire.status().log == state.message


@as_root
@pytest.mark.parametrize("how", [("run",), ("run", "--detach"), ("status",), ("stop",)], ids=" ".join)
def test_a_folder_for_run_time_that_somebody_else_made_is_one_sentence(place, how):
    if Path(f"/run/user/{os.geteuid()}").exists():
        pytest.skip("the system has made one")
    for name in ("DG_LSP_RUNTIME_DIR", "XDG_RUNTIME_DIR"):
        place.environment.pop(name, None)
    place.environment["TMPDIR"] = str(place.folder)
    theirs = place.folder / f"runtime-{os.geteuid()}"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    shown = place.command(*how)
    assert shown.returncode == 2
    assert "DG_LSP_RUNTIME_DIR" in shown.stderr
    assert shown.stderr.count("\n") == 1


@as_root
def test_a_full_disk_below_the_socket_is_one_sentence(place):
    place.runtime.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "nr_inodes=1,mode=700", "none", place.runtime], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        for how in (("run",), ("run", "--detach")):
            shown = place.command(*how)
            assert shown.returncode == 2
            assert re.fullmatch(r"dg-lsp: The folder \S+ can't .* set DG_LSP_RUNTIME_DIR .*\.\n", shown.stderr), shown
    finally:
        subprocess.run(["umount", place.runtime], check=True)


def test_the_log_rotates(place):
    code = (
        "import logging, engine.server.process as p; p._LOG_NBYTES = 1000\n"
        "with p._logging():\n    for number in range(300): logging.warning('line %d', number)"
    )
    subprocess.run([sys.executable, "-c", code], env=place.environment, check=True, timeout=WAIT_S)
    logs = sorted(path for path in place.logs.iterdir() if path.name.startswith("engine.log"))
    assert [path.name for path in logs] == ["engine.log", "engine.log.1", "engine.log.2"]
    assert all(path.stat().st_size <= 1000 for path in logs)
    assert "line 299" in place.log()


def test_folder_and_socket_are_the_users_alone(place):
    place.runtime.mkdir(mode=0o755)
    with running(place):
        assert stat.S_IMODE(place.runtime.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.socket_path.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.logs.stat().st_mode) == 0o700


def refusal(place: Home, *arguments: str) -> str:
    """The one sentence with which `run` declines."""
    result = place.command("run", *arguments)
    assert result.returncode == 2, result
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_a_folder_that_is_a_link_or_a_file_is_refused(place):
    place.runtime.symlink_to("/tmp")
    assert "is not a folder" in refusal(place)
    place.runtime.unlink()
    place.runtime.write_text("")
    assert "DG_LSP_RUNTIME_DIR" in refusal(place)
    place.runtime.unlink()


@as_root
def test_a_folder_of_another_user_is_refused(place):
    place.runtime.mkdir(mode=0o777)
    os.chown(place.runtime, 12345, 12345)
    assert "belongs to user 12345" in refusal(place)
    assert "belongs to user 12345" in refusal(place, "--detach")
    place.runtime.rmdir()


@as_root
def test_another_user_is_turned_away_even_where_the_folder_lets_them_in(place):
    script = (
        "import os, socket, sys; os.setgid(12345); os.setuid(12345); "
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(999))"
    )
    with running(place):
        place.folder.chmod(0o755)
        place.runtime.chmod(0o755)
        place.socket_path.chmod(0o666)
        told = subprocess.run(
            [sys.executable, "-I", "-c", script, str(place.socket_path)],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=True,
        )
        assert "another user" in told.stdout
        place.folder.chmod(0o700)


def test_a_folder_for_everybody_stays_one(place):
    place.runtime.mkdir()
    place.runtime.chmod(0o1777)
    refused = place.command("run", "--detach")
    assert refused.returncode == 2
    assert "is for everybody; set DG_LSP_RUNTIME_DIR to one of its own" in refused.stderr
    assert stat.S_IMODE(place.runtime.stat().st_mode) == 0o1777


@pytest.mark.parametrize("name", ["DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"])
def test_a_folder_that_is_not_the_same_everywhere_is_refused(place, name):
    place.environment[name] = "here"
    refused = place.command("run", cwd=place.folder)
    assert f"{name} is 'here': set it to a whole path" in refused.stderr + place.log()
    assert not (place.folder / "here").exists()


@pytest.mark.parametrize("arguments", [("run",), ("run", "--detach"), ("status",), ("stop",)])
def test_a_transport_that_there_is_none_of_is_named(place, arguments):
    place.runtime.mkdir(mode=0o700)
    place.environment["DG_LSP_TRANSPORT"] = "pipe"
    refused = place.command(*arguments)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "DG_LSP_TRANSPORT is 'pipe': set it to tcp or unix" in refused.stderr


def test_a_socket_path_too_long_for_the_system_is_named(place):
    place.environment["DG_LSP_RUNTIME_DIR"] = str(place.folder / ("x" * MAX_SOCKET_PATH_NBYTES))
    assert "shorter folder" in refusal(place)


def test_without_uvloop_the_loop_of_asyncio_serves(place):
    (place.folder / "uvloop.py").write_text("raise ImportError\n")
    place.environment["PYTHONPATH"] = str(place.folder)
    with running(place, "--model", place.oracle("x = ▮1▮\n")), place.client() as wire:
        wire.fill(1, "x = ")
        answer = wire.reply(1)
        assert isinstance(answer, FillReply)
        assert answer.filled.candidates[0].text == "1"


@contextmanager
def over_tcp(place: Home) -> Iterator[tuple[subprocess.Popen[str], TcpAddress]]:
    """An engine on a port, and what its address file says."""
    with place.popen("run") as process:
        try:
            file = place.runtime / "engine.json"
            wait_until(file.exists, "the address file")
            yield process, TcpAddress(**json.loads(file.read_text()))
        finally:
            process.kill()


def test_over_tcp_only_those_who_prove_to_know_the_secret_are_served():
    with home(DG_LSP_TRANSPORT="tcp") as place, over_tcp(place) as (process, address):
        file = place.runtime / "engine.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        status = place.status()
        assert status is not None
        assert status["pid"] == process.pid
        for secret in ("", "wrong"):
            with socket.create_connection(("127.0.0.1", address.port), WAIT_S) as sock:
                wire, proving = Wire(sock), ClientSide(secret)
                wire.send(Hello(version=VERSION, nonce=proving.nonce))
                challenge = wire.receive()
                with pytest.raises(Impostor):
                    proving.answer(challenge)
                wire.send(Proof(proof=challenge.proof))
                reply = wire.receive()
                assert isinstance(reply, Failed)
                assert "secret" in reply.message
                assert wire.closed_by_engine()
        assert place.command("stop").returncode == 0
        assert process.wait(WAIT_S) == 0
        assert not file.exists()


def test_over_tcp_those_who_prove_nothing_lock_nobody_out():
    with (
        home(DG_LSP_TRANSPORT="tcp") as place,
        over_tcp(place) as (process, address),
        contextlib.ExitStack() as strangers,
    ):
        for _ in range(64):
            strangers.enter_context(socket.create_connection(("127.0.0.1", address.port), WAIT_S))
        status = place.status()
        assert status is not None
        assert status["pid"] == process.pid


@pytest.mark.parametrize(
    "message", [Stop(id=1), Hello(version=VERSION), Hello(version=VERSION, nonce=b"short")], ids=str
)
def test_over_tcp_nothing_is_done_without_a_proof(message):
    with (
        home(DG_LSP_TRANSPORT="tcp") as place,
        over_tcp(place) as (process, address),
        socket.create_connection(("127.0.0.1", address.port), WAIT_S) as sock,
    ):
        wire = Wire(sock)
        wire.send(message)
        reply = wire.receive()
        assert isinstance(reply, Failed)
        assert reply.code == "protocol"
        assert wire.closed_by_engine()
        assert process.poll() is None


def test_a_port_that_another_took_over_is_told_nothing_by_a_command():
    with home(DG_LSP_TRANSPORT="tcp") as place, socket.create_server(("127.0.0.1", 0)) as taken:
        taken.settimeout(0.5)
        place.runtime.mkdir(mode=0o700)
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait(WAIT_S)
        told = {"port": taken.getsockname()[1], "secret": "secret", "token": "secret", "pid": gone.pid}
        (place.runtime / "engine.json").write_text(json.dumps(told))
        shown = place.command("status")
        assert (shown.returncode, shown.stdout.strip()) == (1, "No engine is running.")
        with pytest.raises(TimeoutError):
            taken.accept()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--detach"], "no options of an engine"),
        (["{"], "no options of an engine"),
        (["--detach", "[]"], "no options of an engine"),
        (["--detach", '{"unload_after_s": "long"}'], "no options of an engine"),
        (["--detach", '{"exit_after_s": -5}'], "Expected `float` >= 0.1"),
        (["--detach", '{"exit_afer_s": 5}'], "unknown field `exit_afer_s`"),
        (["--detach", '{"model": "a\udcff"}'], "no options of an engine"),
        (["--detatch", "{}"], "There is no --detatch"),
        (['{"device": "abacus"}'], "no device 'abacus'"),
    ],
)
def test_options_that_no_engine_has_are_a_sentence(place, arguments, told):
    refused = subprocess.run(
        [*python_module("engine.server"), *arguments],
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused
    assert told in refused.stderr
    assert not place.answers()


def test_a_name_that_is_no_utf8_is_refused_at_once(place):
    folder = place.folder / "m\udcff"
    folder.symlink_to(TOY)
    refused = place.command("run", "--detach", "--model", str(folder))
    assert refused.returncode == 2
    assert "is no UTF-8" in refused.stderr
    assert not place.answers()


def test_an_engine_that_gave_way_to_one_that_is_gone_is_not_waited_for(place, monkeypatch):
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", place.environment["DG_LSP_RUNTIME_DIR"])
    monkeypatch.setattr(launch, "_START_S", WAIT_S)
    began = time.monotonic()
    with pytest.raises(EngineError, match="gave way to another one, which is gone now: try again"):
        launch.start(lambda said: subprocess.Popen([sys.executable, "-c", ""]))
    assert time.monotonic() - began < WAIT_S
