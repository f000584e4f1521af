"""The bounds of a connection, with a server in this process so that they can be set small."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import torch
from torch import Tensor

from engine.common.errors import ModelError
from engine.common.messages import Failed, Fill, FillReply, Hello, Notice, StatusQuery, Warm
from engine.common.protocol import VERSION, pack
from engine.common.request import FillRequest
from engine.common.version import __version__
from engine.models.base import Rows
from engine.models.oracle.model import Case, Oracle
from engine.server.server import EngineServer
from engine.server.settings import Bounds, EngineOptions
from tests.engine.processes import Home, Wire, home, wait_until

LONG = "+".join("abcdefghijklmnop")


def new_oracle(_on_percent: object) -> Oracle:
    return Oracle("oracle", [Case(text=f"x = ▮{LONG}▮\n", reveal=1, delay_ms=2)])


@contextmanager
def serving(
    place: Home, load=new_oracle, *, in_order: bool = True, advice=lambda: "", **settings: object
) -> Iterator[EngineServer]:
    """A server on a thread of its own, which ends `in_order` or because it is broken."""
    place.runtime.mkdir(mode=0o700)
    found: list[EngineServer] = []

    async def serve() -> None:
        asked = EngineOptions(model="oracle", device="cpu", unload_after_s=60, exit_after_s=60, **settings)
        found.append(EngineServer(asked, load, advice=advice))
        assert await found[0].serve() == in_order

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        wait_until(place.answers, "the server")
        yield found[0]
    finally:
        place.stop()
        thread.join()


@pytest.fixture
def place(monkeypatch):
    with home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])
        yield place


def complaint(wire: Wire) -> str:
    """What the engine says before it closes the connection."""
    reply = wire.reply(None)
    assert isinstance(reply, Failed)
    assert wire.closed_by_engine()
    return f"{reply.code}: {reply.message}"


@pytest.mark.parametrize("hangs", [False, True], ids=["fails", "hangs"])
def test_a_folder_that_can_not_be_looked_at_ends_no_engine_and_holds_none_up(place, monkeypatch, hangs):
    looked, released = threading.Event(), threading.Event()

    def look(_: object) -> bool:
        looked.set()
        if hangs:
            released.wait(60)
        raise OSError

    monkeypatch.setattr("engine.server.server._LOOK_S", 0.01)
    with serving(place) as server, place.client() as wire:
        with monkeypatch.context() as patch:
            patch.setattr("engine.common.address.Claim.holds", look)
            for _ in range(1 if hangs else 3):
                looked.clear()
                assert looked.wait(60)
            wire.fill(1, "x = ")
            assert isinstance(wire.reply(1), FillReply)
        released.set()
        assert server.status().state.name == "ready"


def test_a_client_that_says_nothing_is_not_waited_for(place):
    with serving(place, bounds=Bounds(handshake_s=0.1)):
        wire = place.connect()
        assert "did not come in time" in complaint(wire)
        wire.close()


def test_a_handshake_that_drips_is_not_waited_for(place):
    with serving(place, bounds=Bounds(handshake_s=0.5)):
        wire = place.connect()

        def drip() -> None:
            for byte in pack(Hello(version=VERSION)):
                wire.send_bytes(bytes([byte]))
                time.sleep(0.1)

        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            drip()
        wire.close()


def test_a_first_message_is_short(place):
    with serving(place, bounds=Bounds(handshake_s=60.0)):
        wire = place.connect()
        wire.send_bytes(struct.pack(">I", 1_000_000) + bytes(100_000))
        assert "The first message is too long." in complaint(wire)
        wire.close()


def connected(place: Home) -> Wire:
    """A connection that has not said hello yet, however many want one."""
    while True:
        with contextlib.suppress(BlockingIOError):
            return place.connect()
        time.sleep(0.01)


def test_those_who_say_no_hello_lock_nobody_out(place):
    with serving(place, max_clients=2, bounds=Bounds(handshake_s=60.0)):
        strangers = [connected(place) for _ in range(100)]
        with place.client(), place.client() as wire:
            assert wire.status().clients == ("test", "test")
        # The first came no further when others came.
        assert strangers[0].closed_by_engine()
        for stranger in strangers:
            stranger.close()


def test_a_client_that_stops_within_a_frame_is_not_waited_for(place):
    with serving(place, bounds=Bounds(frame_s=0.1)), place.client() as patient, place.client() as wire:
        wire.send_bytes(pack(StatusQuery(id=1))[:-1])
        assert "did not come in time" in complaint(wire)
        # Between two frames there is no hurry.
        assert patient.status().clients == ("test",)


def flood(wire: Wire) -> None:
    while True:
        wire.send_bytes(pack(StatusQuery(id=1)) * 1000)


def test_a_client_that_never_reads_is_dropped_and_costs_no_other(place):
    with serving(place, bounds=Bounds(unsent_nbytes=2**16)), place.client() as good:
        with place.client("deaf") as deaf, pytest.raises((BrokenPipeError, ConnectionResetError)):
            flood(deaf)
        wait_until(lambda: good.status().clients == ("test",), "the deaf one to be dropped")


def test_a_client_that_reads_late_gets_its_answer_without_the_drafts(place):
    with serving(place, bounds=Bounds(unsent_draft_nbytes=-1)), place.client() as wire:
        wire.fill(1, "x = ", drafts=True)
        reply = wire.receive()
        while not isinstance(reply, FillReply):
            assert type(reply).__name__ == "Notice"
            reply = wire.receive()
        assert reply.filled.candidates[0].text == LONG


def test_there_are_only_so_many_clients(place):
    with serving(place, max_clients=2), place.client(), place.client():
        wire = place.connect()
        wire.send(Hello(version=VERSION))
        assert "busy" in complaint(wire)
        wire.close()


@pytest.mark.parametrize(
    ("raised", "code", "word"),
    [
        (ModelError("The model m is not here: pull it."), "model", "pull it"),
        (MemoryError(), "out_of_memory", "smaller model"),
        (RuntimeError("boom"), "internal", "log"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_a_sentence_and_not_tried_at_each_keystroke(place, raised, code, word):
    tries = []

    def load(_on_percent: object) -> Oracle:
        tries.append(1)
        raise raised

    with serving(place, load=load), place.client() as wire:
        for id in (1, 2):
            wire.fill(id, "x = ")
            reply = wire.reply(id)
            assert isinstance(reply, Failed)
            assert reply.code == code
            assert word in reply.message
        assert wire.status().state.name == "error"
        assert word in wire.status().state.message
    assert len(tries) == 1


@pytest.mark.parametrize("when", ["loading", "a step"])
def test_an_engine_whose_device_is_broken_ends(place, when: str):
    class Broken(Oracle):
        def step(self, rows: Rows) -> Tensor:
            raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    def load(_on_percent: object) -> Oracle:
        model = Broken("oracle", [Case(text="x = ▮1▮\n")])
        return model if when == "a step" else model.step(None)  # type: ignore[arg-type, return-value]

    with serving(place, load=load, in_order=False), place.client() as wire:
        wire.fill(1, "x = ")
        reply = wire.reply(1)
        assert isinstance(reply, Failed)
        assert (reply.code, "being replaced" in reply.message) == ("internal", True)
        assert wire.closed_by_engine()


def test_a_deadline_that_passes_in_the_queue_is_late(place):
    with serving(place), place.client() as wire:
        wire.fill(1, "x = ")
        wire.reply(1)
        wire.send(Fill(id=2, request=FillRequest(prefix="x = ", suffix="\n", deadline_ms=1e-6)))
        reply = wire.reply(2)
        assert isinstance(reply, Failed)
        assert reply.code == "late"


def test_windows_are_given_advice_once_and_their_status_stays_without_it(place):
    asked: list[str] = []

    def advice() -> str:
        asked.append("Run `dg-lsp pull coder-1.5b`.")
        return asked[-1]

    def when_ready(wire: Wire) -> Notice:
        while not (isinstance(message := wire.receive(), Notice) and message.state.name == "ready"):
            pass
        return message

    with serving(place, advice=advice) as server, place.client() as command, closing(place.connect()) as window:
        window.handshake(package=__version__)
        command.send(Warm(id=1))
        notice = when_ready(window)
        assert (notice.advice, notice.state.message) == ("Run `dg-lsp pull coder-1.5b`.", "")
        assert when_ready(command).advice == ""
        server._loop.call_soon_threadsafe(server._show, server._state)
        assert when_ready(window).advice == ""
    assert len(asked) == 1


def test_advice_waits_for_a_window(place):
    asked: list[str] = []
    with serving(place, advice=lambda: asked.append("") or "") as server, place.client() as command:
        command.fill(1, "x = ")
        assert isinstance(command.reply(1), FillReply)
        assert (server._state.name, asked) == ("ready", [])
