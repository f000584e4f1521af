"""The language server's engine client against real engines: found, started, lost, replaced, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dg_lsp.backend.client import EngineClient, EngineFailure, Launch, Timeouts
from dg_lsp.backend.launch import difference
from engine.common.errors import BadInput
from engine.common.frames import MAX_FRAME_NBYTES, FrameSplitter, frame
from engine.common.messages import Challenge, ClientMessage, Done, EngineState, Failed, Hello, Notice, Warm, Welcome
from engine.common.peercred import listener
from engine.common.processes import python_module
from engine.common.protocol import VERSION, pack, unpack_from_client
from engine.common.request import FillRequest
from engine.common.version import __version__
from tests.engine.processes import WAIT_S, Home, as_root, home, running, served_by_another

LONG = "+".join("abcdefghijklmnop")
CASES = ("quick = ▮1▮\n", {"text": f"slow = ▮{LONG}▮\n", "reveal": 1, "delay_ms": 20})
QUICK = FillRequest(prefix="quick = ", suffix="\n")
SLOW = FillRequest(prefix="slow = ", suffix="\n")
PATIENCE = Timeouts(start_s=WAIT_S, return_s=0.05, first_retry_s=0.2)


@pytest.fixture
def place(monkeypatch):
    with home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])
        yield place


def launching(*launches: Launch):
    """Each in turn, the last one from then on."""
    left = list(launches)

    async def launch() -> Launch:
        return left.pop(0) if len(left) > 1 else left[0]

    return launch


@asynccontextmanager
async def client_of(place: Home, timeouts: Timeouts = PATIENCE, model: str = "oracle:/none.json"):
    """A client and the states that it showed."""
    states: list[EngineState] = []
    client = EngineClient(launching(Launch(model=model)), client="test", on_state=states.append, timeouts=timeouts)
    try:
        yield client, states
    finally:
        await client.close()


async def until(holds, what: str):
    async with asyncio.timeout(WAIT_S):
        while not (value := holds()):
            await asyncio.sleep(0.02)
        assert value, what
        return value


@pytest.mark.asyncio
async def test_fills_drafts_superseding_and_cancels(place):
    with running(place, "--model", place.oracle(*CASES)):
        async with client_of(place) as (client, states):
            filled = await client.fill(QUICK)
            assert filled.candidates[0].text == "1"
            assert [state.name for state in states] == ["unloaded", "loading", "ready"]

            drafts = []
            older = asyncio.create_task(client.fill(SLOW, document="a.py", on_draft=drafts.append))
            await until(lambda: drafts, "a draft")
            assert (await client.fill(QUICK, document="a.py")).candidates
            with pytest.raises(EngineFailure) as raised:
                await older
            assert raised.value.code == "superseded"

            cancelled = asyncio.create_task(client.fill(SLOW))
            while (await client.status()).running == 0:
                await asyncio.sleep(0.01)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            while (await client.status()).running:
                await asyncio.sleep(0.01)
            assert (await client.status()).failed == {"superseded": 1, "cancelled": 1}

            with pytest.raises(EngineFailure, match=r"within 0\.1 s") as raised:
                await client.fill(SLOW, timeout_s=0.1)
            assert raised.value.code == "timeout"
            assert (await client.fill(QUICK)).candidates


@pytest.mark.asyncio
async def test_a_request_that_can_not_be_sent_fails_alone(place):
    with running(place):
        async with client_of(place) as (client, _):
            with pytest.raises(EngineFailure, match="surrogate") as raised:
                await client.fill(FillRequest(prefix="\ud83d", suffix=""))
            assert raised.value.code == "bad_request"
            assert (await client.status()).queued == 0


@pytest.mark.asyncio
async def test_two_windows_that_start_at_once_share_one_engine(place):
    async with client_of(place) as (one, states), client_of(place) as (other, _):
        first, second = await asyncio.gather(one.status(), other.status())
        assert first.pid == second.pid
        assert states[0] == EngineState(name="starting")
        assert len((await one.status()).clients) == 2


@pytest.mark.asyncio
async def test_an_engine_killed_at_work_is_replaced_before_the_next_request(place):
    async with client_of(place) as (client, states):
        pid = (await client.status()).pid
        # Loading takes long enough to be killed in.
        pending = asyncio.create_task(client.fill(QUICK))
        await until(lambda: client.state.name == "loading", "the load")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(EngineFailure) as raised:
            await pending
        assert raised.value.code == "unavailable"
        states.clear()
        await until(lambda: client.state.name == "unloaded", "the next engine")
        assert (await client.status()).pid != pid


@pytest.mark.asyncio
async def test_a_wedged_engine_is_replaced(place):
    impatient = Timeouts(start_s=WAIT_S, beat_s=0.2, idle_s=1.5)
    async with client_of(place, impatient) as (client, _):
        pid = (await client.status()).pid
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(EngineFailure) as raised:
            await client.fill(QUICK, timeout_s=0.2)
        assert raised.value.code == "timeout"
        await until(lambda: client.state.name == "starting", "the end of the wedged one")
        await until(lambda: client.state.name == "unloaded", "the next engine")
        assert (await client.status()).pid != pid


@pytest.mark.asyncio
async def test_a_wedged_engine_is_replaced_where_there_are_no_unix_sockets(place, monkeypatch):
    monkeypatch.setenv("DG_LSP_TRANSPORT", "tcp")
    place.environment["DG_LSP_TRANSPORT"] = "tcp"
    impatient = Timeouts(start_s=WAIT_S, beat_s=0.2, idle_s=1.5)
    async with client_of(place, impatient) as (client, _):
        pid = (await client.status()).pid
        try:
            os.kill(pid, signal.SIGSTOP)
            with pytest.raises(EngineFailure):
                await client.fill(QUICK, timeout_s=0.2)
            await until(lambda: client.state.name == "starting", "the end of the wedged one")
            await until(lambda: client.state.name == "unloaded", "the next engine")
            assert (await client.status()).pid != pid
            # A port in the file that the process does not listen on is nobody's to kill.
            assert listener(os.getpid(), 1) is None
        finally:
            assert place.command("stop").returncode == 0


@pytest.mark.asyncio
async def test_an_engine_at_work_for_long_is_not_taken_for_wedged(place):
    impatient = Timeouts(start_s=WAIT_S, beat_s=0.02, idle_s=WAIT_S)
    slow = {"text": "slow = ▮a▮\n", "delay_ms": 700}
    async with client_of(place, impatient, place.oracle(slow)) as (client, states):
        await client.warm()
        states.clear()
        assert (await client.fill(SLOW)).candidates[0].text == "a"
        assert states == []


@pytest.mark.asyncio
async def test_an_engine_that_is_replaced_loads_its_model_again_unasked(place):
    async with client_of(place, model=place.oracle(*CASES)) as (client, states):
        await client.warm()
        pid = (await client.status()).pid
        states.clear()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: EngineState(name="ready") in states, "the model of the next engine")
        assert (await client.status()).pid != pid


async def died(client: EngineClient) -> None:
    """Its engine was killed, and it knows."""
    pid = (await client.status()).pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: client.state.name in ("starting", "error"), "the loss")


@pytest.mark.asyncio
async def test_restarts_back_off_where_engine_after_engine_dies(place):
    async with client_of(place, Timeouts(start_s=WAIT_S, first_retry_s=WAIT_S)) as (client, states):
        await died(client)
        await until(lambda: client.state.name == "unloaded", "the next engine, at once")
        await died(client)
        assert client.state.name == "error"
        assert "ended 2 times without an answer" in client.state.message
        assert "engine.crash" in client.state.message
        states.clear()
        for _ in range(3):
            with pytest.raises(EngineFailure, match="ended 2 times") as raised:
                await client.fill(QUICK)
            assert raised.value.code == "unavailable"
        assert states == []
        # What somebody else starts is used.
        assert (await asyncio.to_thread(place.command, "run", "--detach")).returncode == 0
        assert (await client.status()).served == 0


@pytest.mark.asyncio
async def test_restarts_go_on_by_themselves(place):
    async with client_of(place, Timeouts(start_s=WAIT_S, first_retry_s=0.3)) as (client, _):
        for _ in range(3):
            await died(client)
            await until(lambda: client.state.name == "unloaded", "the next engine")


@pytest.mark.asyncio
async def test_an_engine_that_answered_is_replaced_at_once_each_time(place):
    timeouts = Timeouts(start_s=WAIT_S, first_retry_s=10 * WAIT_S)
    async with client_of(place, timeouts, place.oracle(*CASES)) as (client, states):
        for _ in range(2):
            assert (await client.fill(QUICK)).candidates
            await died(client)
            await until(lambda: client.state.name in ("unloaded", "ready"), "the next engine")
        assert "error" not in [state.name for state in states]


@pytest.mark.asyncio
async def test_an_engine_wedged_before_the_client_came_is_replaced(place):
    with running(place) as process:
        process.send_signal(signal.SIGSTOP)
        async with client_of(place, Timeouts(start_s=WAIT_S, idle_s=1.5)) as (client, _):
            assert (await client.status()).pid != process.pid


_BUSY = """
import os, socket, sys, time
from engine.common.messages import EngineState, Welcome
from engine.common.protocol import VERSION, pack
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1] + "0")
listening.listen()
os.rename(sys.argv[1] + "0", sys.argv[1])  # Who sees it can connect.
ends = time.monotonic() + 3
while time.monotonic() < ends:
    pass
state = EngineState(name="loading")
connection, _ = listening.accept()
connection.sendall(pack(Welcome(version=VERSION, engine="0", pid=0, model="", device="", state=state)))
connection.recv(1)
time.sleep(60)
"""
"""An engine that holds its interpreter for a while, as one may that imports what a model needs."""


@pytest.mark.asyncio
async def test_an_engine_at_work_is_waited_for_by_a_second_window_too(place):
    place.runtime.mkdir(mode=0o700)
    busy = await asyncio.create_subprocess_exec(*python_module("engine")[:2], "-c", _BUSY, str(place.socket_path))
    try:
        await until(place.socket_path.exists, "its socket")
        async with client_of(place, Timeouts(start_s=WAIT_S, idle_s=1)) as (client, _):
            await client.connect()
            assert client.state.name == "loading"
        assert busy.returncode is None
    finally:
        busy.kill()
        await busy.wait()
        place.socket_path.unlink()


@pytest.mark.asyncio
async def test_an_engine_at_work_for_ever_is_replaced_all_the_same(place):
    place.runtime.mkdir(mode=0o700)
    endless = _BUSY.replace("+ 3", "+ 600")
    busy = await asyncio.create_subprocess_exec(*python_module("engine")[:2], "-c", endless, str(place.socket_path))
    try:
        await until(place.socket_path.exists, "its socket")
        async with client_of(place, Timeouts(start_s=WAIT_S, idle_s=1, busy_s=2)) as (client, _):
            assert (await client.status()).served == 0
        assert await asyncio.wait_for(busy.wait(), WAIT_S) == -signal.SIGKILL
    finally:
        with contextlib.suppress(ProcessLookupError):
            busy.kill()


@pytest.mark.asyncio
async def test_an_engine_that_was_stopped_stays_stopped_until_somebody_starts_it(place):
    async with client_of(place) as (client, _):
        await client.connect()
        await asyncio.to_thread(place.stop)
        await until(lambda: client.state.name == "off", "the news")
        with pytest.raises(EngineFailure, match=r"stop|ended before it answered"):
            await client.fill(QUICK)
        assert "restart the language server, or run `dg-lsp engine run --detach`" in client.state.message
        assert not place.answers()
        assert (await asyncio.to_thread(place.command, "run", "--detach")).returncode == 0
        await until(lambda: client.state.name == "unloaded", "the client's return")


@pytest.mark.asyncio
async def test_an_engine_that_was_stopped_is_looked_for_again_though_its_socket_is_left_behind(place):
    place.runtime.mkdir(mode=0o700)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state = EngineState(name="unloaded")
        await reader.read(65536)
        writer.write(pack(Welcome(version=VERSION, engine="0", pid=0, model="", device="", state=state)))
        writer.write(pack(Notice(state=EngineState(name="stopping"))))
        server.close()
        writer.close()

    async with await asyncio.start_unix_server(meet, place.socket_path) as server, client_of(place) as (client, _):
        await client.connect()
        await until(lambda: client.state.name == "off", "the news")
        # As long as an engine takes to go down.
        await asyncio.sleep(0.2)
        assert (await asyncio.to_thread(place.command, "run", "--detach")).returncode == 0
        await until(lambda: client.state.name == "unloaded", "the client's return")


@pytest.mark.asyncio
async def test_an_engine_is_started_as_it_is_wanted_at_that_time(place):
    launches = launching(
        Launch(model="oracle:/none.json", device="cpu", unload_after_s=33, exit_after_s=77),
        Launch(model="oracle:/other.json"),
    )
    client = EngineClient(launches, timeouts=PATIENCE)
    status = await client.status()
    assert (status.model, status.requested_device) == ("oracle:/none.json", "cpu")
    assert (status.unload_after_s, status.exit_after_s) == (33, 77)
    os.kill(status.pid, signal.SIGKILL)
    await until(lambda: client.state.name == "starting", "the loss")
    assert (await client.status()).model == "oracle:/other.json"
    await client.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1], ids=["older", "newer"])
async def test_an_engine_of_another_version_is_a_sentence_with_the_way_out(place, version):
    with running(place, version=version):
        async with client_of(place) as (client, _):
            with pytest.raises(EngineFailure, match=r"another version of dg-lsp\. Run `dg-lsp engine restart`"):
                await client.status()
            assert client.state.name == "error"
            assert (await asyncio.to_thread(place.command, "restart")).returncode == 0
            assert (await client.status()).protocol == VERSION


@pytest.mark.asyncio
@pytest.mark.parametrize("package", ["0.0.1", "99.0"], ids=["older", "newer"])
async def test_an_engine_of_another_release_is_replaced_once_no_window_of_that_release_is_left(place, package):
    with running(place, package=package) as process:
        wire = place.connect()
        wire.handshake(package=package)
        async with client_of(place) as (client, _):
            told = await client.status()
            assert (told.pid, told.engine) == (process.pid, package)
            sentence = difference(Launch(), told)
            assert f"dg-lsp {package}" in sentence
            assert "`dg-lsp engine restart`" in sentence
            wire.close()
            assert await asyncio.to_thread(process.wait, WAIT_S) == 0
            told = await client.status()
            assert (told.pid != process.pid, told.engine) == (True, __version__)
            assert difference(Launch(), told) == ""


@pytest.mark.asyncio
@pytest.mark.parametrize("package", ["0.0.1", "99.0"], ids=["older", "newer"])
async def test_an_engine_of_another_release_without_windows_is_replaced_at_the_handshake(place, package):
    with running(place, package=package) as process:
        wire = place.connect()
        wire.handshake(package=package)
        wire.close()
        # A command is no window.
        with place.client() as command:
            assert command.status().engine == package
            async with client_of(place) as (client, states):
                assert (await client.status()).engine == __version__
                assert "off" not in [state.name for state in states]
        assert await asyncio.to_thread(process.wait, WAIT_S) == 0


@pytest.mark.asyncio
async def test_an_engine_of_another_version_delays_no_start_once_it_is_gone(place):
    place.runtime.mkdir(mode=0o700)

    async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(pack(Failed(id=None, code="version", message="")))
        writer.close()

    async with client_of(place, Timeouts(start_s=WAIT_S, first_retry_s=10 * WAIT_S)) as (client, _):
        async with await asyncio.start_unix_server(meet, place.socket_path):
            for _ in range(3):
                with pytest.raises(EngineFailure, match="another version"):
                    await client.status()
        assert (await client.status()).served == 0


@pytest.mark.asyncio
async def test_an_engine_just_started_waits_for_the_window_that_started_it(place):
    with running(place, package="99.0") as process:
        async with client_of(place) as (client, _):
            assert (await client.status()).pid == process.pid
            assert (await asyncio.to_thread(place.command, "restart")).returncode == 0
            assert (await client.status()).engine == __version__


@pytest.mark.asyncio
@as_root
async def test_nothing_is_said_to_a_socket_that_another_user_serves(place):
    with served_by_another(place) as said:
        async with client_of(place) as (client, _):
            with pytest.raises(EngineFailure, match="another user; set DG_LSP_RUNTIME_DIR"):
                await client.status()
        assert said() == ""


@pytest.mark.parametrize("before", [(), (Challenge(nonce=bytes(32), proof=bytes(32)),)], ids=["welcome", "challenge"])
@pytest.mark.parametrize("own_pid", [False, True], ids=["its process is gone", "its process is here"])
@pytest.mark.asyncio
async def test_who_took_over_the_port_learns_neither_the_secret_nor_a_document(place, monkeypatch, own_pid, before):
    monkeypatch.setenv("DG_LSP_TRANSPORT", "tcp")
    place.environment["DG_LSP_TRANSPORT"] = "tcp"
    heard = bytearray()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state = EngineState(name="ready")
        heard.extend(await reader.read(65536))
        writer.write(b"".join(pack(each) for each in before))
        writer.write(pack(Welcome(version=VERSION, engine="0", pid=0, model="", device="", state=state)))
        heard.extend(await reader.read(65536))
        writer.close()

    gone = await asyncio.create_subprocess_exec("true")
    await gone.wait()
    place.runtime.mkdir(mode=0o700)
    async with await asyncio.start_server(meet, "127.0.0.1", 0) as impostor, client_of(place) as (client, _):
        port = impostor.sockets[0].getsockname()[1]
        told = {"port": port, "secret": "s3cret", "token": "s3cret", "pid": os.getpid() if own_pid else gone.pid}
        (place.runtime / "engine.json").write_text(json.dumps(told))
        with contextlib.suppress(EngineFailure):
            await client.fill(FillRequest(prefix="confidential", suffix=""), timeout_s=5)
        assert b"s3cret" not in heard
        assert b"confidential" not in heard
        assert bool(heard) == own_pid
        try:
            assert (await client.status()).served == 0
        finally:
            await asyncio.to_thread(place.command, "stop")


OVERSIZED = struct.pack(">I", MAX_FRAME_NBYTES + 1)


@pytest.mark.parametrize("nonsense", [b"\x00\x00\x00\x02hi", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
@pytest.mark.asyncio
async def test_what_is_no_engine_at_the_socket_gives_way_to_one(place, nonsense):
    place.runtime.mkdir(mode=0o700)

    async def talk_nonsense(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(nonsense)
        writer.close()

    async with await asyncio.start_unix_server(talk_nonsense, place.socket_path), client_of(place) as (client, _):
        assert (await client.status()).served == 0


async def answered(reader: asyncio.StreamReader, splitter: FrameSplitter) -> AsyncIterator[ClientMessage]:
    """What a client says, as an engine hears it."""
    while data := await reader.read(65536):
        for body in splitter.feed(data):
            yield unpack_from_client(body)


@pytest.mark.parametrize(
    ("broken", "closes"),
    [
        pytest.param(frame({"type": "nonsense"}), False, id="unknown type"),
        pytest.param(frame({"type": "done", "id": "one"}), False, id="wrong type"),
        pytest.param(pack(Warm(id=1)), False, id="a client's message"),
        pytest.param(b"\x00\x00\x00\x02\xc1\xc1", False, id="garbage"),
        pytest.param(OVERSIZED, False, id="oversized"),
        pytest.param(pack(Notice(state=EngineState(name="ready"))) + OVERSIZED, False, id="oversized after a good one"),
        pytest.param(pack(Done(id=1))[:-1], True, id="truncated"),
    ],
)
@pytest.mark.asyncio
async def test_what_an_engine_may_not_say_costs_one_failure_and_a_fresh_connection(place, broken, closes):
    place.runtime.mkdir(mode=0o700)
    meetings = 0

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal meetings
        meetings += 1
        first = meetings == 1
        state = EngineState(name="unloaded")
        async for message in answered(reader, FrameSplitter()):
            if isinstance(message, Hello):
                writer.write(pack(Welcome(version=VERSION, engine="0", pid=0, model="", device="", state=state)))
            elif first:
                writer.write(broken)
                if closes:
                    break
            elif isinstance(message, Warm):
                writer.write(pack(Done(id=message.id)))
        writer.close()

    timeouts = Timeouts(beat_s=WAIT_S)
    async with await asyncio.start_unix_server(meet, place.socket_path), client_of(place, timeouts) as (client, states):
        with pytest.raises(EngineFailure) as raised:
            await client.warm()
        assert raised.value.code == "unavailable"
        await client.warm()
        assert meetings == 2
        assert "error" not in [state.name for state in states]


@pytest.mark.asyncio
async def test_an_engine_that_cannot_start_is_one_sentence_and_not_tried_at_each_keystroke(place):
    place.runtime.write_text("in the way")
    async with client_of(place, Timeouts(first_retry_s=WAIT_S)) as (client, states):
        for _ in range(3):
            with pytest.raises(EngineFailure, match="is not a folder") as raised:
                await client.fill(QUICK)
            assert raised.value.code == "unavailable"
        assert [state.name for state in states] == ["error"]
        assert states[0].message.count(".") >= 1
    place.runtime.unlink()


@pytest.mark.asyncio
async def test_a_starter_that_fails_is_quoted_and_tried_again_later(place):
    broken = Launch(starter=("python3", "-c", "import sys; sys.exit('No torch here.')"))
    launches = launching(broken, Launch(model="oracle:/none.json"))
    client = EngineClient(launches, timeouts=Timeouts(first_retry_s=0.1))
    with pytest.raises(EngineFailure, match="No torch here"):
        await client.status()
    await asyncio.sleep(0.15)
    assert (await client.status()).served == 0
    await client.close()


@pytest.mark.asyncio
async def test_an_engine_that_could_not_start_for_a_whole_day_is_started_once_it_can(place):
    tries = 0

    async def launch() -> Launch:
        nonlocal tries
        tries += 1
        if tries <= 1100:
            raise BadInput("No torch here.")
        return Launch(model="oracle:/none.json")

    client = EngineClient(launch, timeouts=Timeouts(start_s=WAIT_S, first_retry_s=0.0))
    for _ in range(1100):
        with pytest.raises(EngineFailure, match="No torch here"):
            await client.status()
    assert (await client.status()).served == 0
    await client.close()


@pytest.mark.asyncio
async def test_a_closed_client_starts_nothing(place):
    async with client_of(place) as (client, _):
        await client.close()
        with pytest.raises(EngineFailure, match="closed"):
            await client.status()
    assert not place.answers()


@pytest.mark.asyncio
async def test_a_wedged_engine_that_others_wait_for_is_replaced(place: Home):
    """As many as can wait to be met: the system refuses one more, and says of nobody whose socket it is."""
    model = place.oracle(*CASES)
    async with client_of(place, model=model) as (first, _), client_of(place, model=model) as (client, _):
        pid = (await first.status()).pid
        await first.close()
        os.kill(pid, signal.SIGSTOP)
        with contextlib.ExitStack() as crowd:
            with contextlib.suppress(BlockingIOError):
                while True:
                    sock = crowd.enter_context(socket.socket(socket.AF_UNIX))
                    sock.setblocking(False)
                    sock.connect(str(place.socket_path))
            assert (await client.fill(QUICK)).candidates
            assert (await client.status()).pid != pid
