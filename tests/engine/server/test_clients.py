"""One engine process, several clients: what they get, in which order, and what they can't do to each other."""

from __future__ import annotations

import contextlib
import struct
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.cli.doctor import examine
from engine.common.frames import MAX_FRAME_NBYTES, frame
from engine.common.messages import (
    Cancel,
    Done,
    Drafted,
    Failed,
    Fill,
    FillReply,
    Hello,
    StatusQuery,
    StatusReply,
    Stop,
    Warm,
    Welcome,
)
from engine.common.protocol import VERSION, pack
from engine.common.request import FillRequest
from tests.engine.processes import Home, Wire, home, running, wait_until

LONG = "+".join("abcdefghijklmnop")
CASES = (
    {"text": "quick = ▮1▮\n", "alternatives": ["2"]},
    {"text": f"slow = ▮{LONG}▮\n", "reveal": 1, "delay_ms": 10},
    {"text": "memory = ▮1▮\n", "fault": "out_of_memory"},
    {"text": "defect = ▮1▮\n", "fault": "defect"},
)


@pytest.fixture(scope="module")
def place():
    with home() as place, running(place, "--model", place.oracle(*CASES)):
        with place.client() as wire:
            wire.send(Warm(id=1))
            assert wire.reply(1) == Done(id=1)
        yield place


@pytest.fixture
def wire(place: Home):
    with place.client("first") as wire:
        yield wire


@pytest.fixture
def other(place: Home):
    with place.client("second") as wire:
        yield wire


@pytest.fixture
def stranger(place: Home):
    """A connection that has not said hello."""
    wire = place.connect()
    yield wire
    wire.close()


@pytest.fixture(autouse=True)
def still_serves(place: Home):
    """Whatever a test did: the next client is served, and no work is left behind."""
    yield
    with place.client() as wire:
        wire.fill(1, "quick = ")
        assert texts(wire, 1) == ["1"]
        wait_until(lambda: wire.status().running + wire.status().queued == 0, "the work to end")


def texts(wire: Wire, id: int) -> list[str]:
    reply = wire.reply(id)
    assert isinstance(reply, FillReply), reply
    return [candidate.text for candidate in reply.filled.candidates]


def code(wire: Wire, id: int | None) -> str:
    reply = wire.reply(id)
    assert isinstance(reply, Failed), reply
    return reply.code


def test_a_fill_is_answered_with_its_candidates(wire):
    wire.fill(1, "quick = ", n=2)
    assert texts(wire, 1) == ["1", "2"]


def test_drafts_come_before_the_answer_for_those_who_asked(wire):
    wire.fill(1, "slow = ", drafts=True)
    drafts = [wire.draft(1).draft for _ in range(5)]
    assert [draft.step for draft in drafts] == sorted({draft.step for draft in drafts})
    assert drafts[4].text.startswith("a+b")
    assert texts(wire, 1) == [LONG]


def test_no_drafts_come_unasked(wire):
    wire.fill(1, "slow = ")
    assert isinstance(wire.receive(), FillReply)


def test_a_cancel_takes_effect_within_a_step(wire):
    wire.fill(1, "slow = ", drafts=True)
    wire.draft(1)
    wire.send(Cancel(id=1))
    assert code(wire, 1) == "cancelled"
    before = wire.status().forwards
    wire.fill(2, "quick = ", drafts=True)
    while not isinstance(message := wire.receive(), FillReply):
        assert not (isinstance(message, Drafted) and message.id == 1)
    # Two or three of them are the quick one's own.
    assert wire.status().forwards - before < 8


def test_a_newer_request_for_a_document_takes_the_olders_place(wire):
    wire.fill(1, "slow = ", document="a.py", drafts=True)
    wire.draft(1)
    wire.fill(2, "quick = ", document="a.py")
    assert code(wire, 1) == "superseded"
    assert texts(wire, 2) == ["1"]


def test_another_clients_request_for_the_same_document_stays(wire, other):
    wire.fill(1, "slow = ", document="a.py")
    other.fill(1, "quick = ", document="a.py")
    assert texts(other, 1) == ["1"]
    assert texts(wire, 1) == [LONG]


def test_windows_that_meet_share_forward_passes(wire, other):
    before = wire.status()
    wire.fill(1, "slow = ")
    other.fill(1, "slow = ")
    assert texts(wire, 1) == texts(other, 1) == [LONG]
    after = wire.status()
    shared = after.shared_forwards - before.shared_forwards
    assert shared > 8
    # Less than the two would have taken one after the other.
    assert after.forwards - before.forwards < 2 * shared


def test_interactive_work_interrupts_background_work_which_goes_on(wire, other):
    wire.fill(1, "slow = ", priority="background", drafts=True)
    wire.draft(1)
    began = time.monotonic()
    other.fill(1, "slow = ", drafts=True)
    arrivals = [other.draft(1) for _ in range(4)]
    assert len(arrivals) == 4
    assert texts(other, 1) == [LONG]
    interactive_s = time.monotonic() - began
    steps = [wire.draft(1).draft.step for _ in range(4)]
    assert steps == sorted(steps)
    assert texts(wire, 1) == [LONG]
    # The long one was paused, not merely joined: it has most of its steps still to do.
    assert time.monotonic() - began > interactive_s * 1.3


def test_a_client_that_vanishes_frees_its_work(place, wire):
    with place.client("vanishing") as vanishing:
        vanishing.fill(1, "slow = ", drafts=True)
        vanishing.fill(2, "slow = ")
        vanishing.draft(1)
    wait_until(lambda: wire.status().running == 0 and "vanishing" not in wire.status().clients, "the work to go")


def test_a_client_that_never_reads_costs_no_other(place, wire):
    with place.client("deaf") as deaf:
        deaf.socket.setblocking(False)
        asked = pack(StatusQuery(id=1)) * 1000
        try:
            for _ in range(5):
                deaf.send_bytes(asked)
        except BlockingIOError:
            pass
        for id in range(1, 6):
            wire.fill(id, "quick = ")
            assert texts(wire, id) == ["1"]


def test_too_many_requests_get_a_clear_busy(wire, other):
    for id in range(1, 18):
        wire.fill(id, "slow = ")
    assert code(wire, 17) == "busy"
    other.fill(1, "quick = ")
    assert texts(other, 1) == ["1"]


def test_running_out_of_memory_costs_that_request_only(wire, other):
    other.fill(1, "slow = ", drafts=True)
    other.draft(1)
    wire.fill(1, "memory = ")
    reply = wire.reply(1)
    assert isinstance(reply, Failed)
    assert (reply.code, "smaller model" in reply.message) == ("out_of_memory", True)
    assert texts(other, 1) == [LONG]


def test_a_defect_costs_that_request_only_and_is_in_the_log(place, wire, other):
    other.fill(1, "slow = ", drafts=True)
    other.draft(1)
    wire.fill(1, "defect = ")
    assert code(wire, 1) == "internal"
    assert texts(other, 1) == [LONG]
    # What it says quotes the text.
    assert "failed at this request\nRuntimeError\n" in place.log()
    assert "oracle/model.py" in place.log()
    assert "defect" not in place.log()


def test_a_deadline_that_passes_brings_the_canvas_so_far(wire):
    wire.send(Fill(id=1, request=FillRequest(prefix="slow = ", suffix="\n", deadline_ms=150)))
    reply = wire.reply(1)
    assert isinstance(reply, FillReply)
    assert all(LONG.startswith(candidate.text) for candidate in reply.filled.candidates)
    assert reply.filled.steps < 15


def test_the_log_holds_no_code(place, wire):
    wire.fill(1, "password_of_the_user = ")
    wire.reply(1)
    assert "password_of_the_user" not in place.log()


def test_status_counts_what_was_done(wire):
    before = wire.status()
    wire.fill(1, "quick = ")
    wire.reply(1)
    after = wire.status()
    assert after.served == before.served + 1
    assert after.clients == ("first",)
    assert (after.state.name, after.device, after.model.startswith("oracle:")) == ("ready", "cpu", True)
    assert after.loaded_s is not None
    assert 0 < after.loaded_s < after.up_s
    assert after.rss_nbytes > 10 * 2**20
    for times in (after.encode_ms, after.step_ms, after.total_ms):
        assert times.p50 is not None
        assert times.p95 is not None
        assert 0 < times.p50 <= times.p95
    assert after.tokens_per_forward is not None
    assert after.tokens_per_forward > 0


def test_the_doctor_has_the_running_engine_do_its_fill(place, wire, monkeypatch):
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", place.environment["DG_LSP_RUNTIME_DIR"])
    monkeypatch.setenv("DG_LSP_STATE_DIR", place.environment["DG_LSP_STATE_DIR"])
    status = wire.status()
    details = {finding.subject: finding.detail for finding in examine(status.model, "cpu")}
    assert f"engine {status.pid}" in details["socket"]
    assert "in the engine that runs" in details["fill"]
    assert wire.status().served == status.served + 1


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ({"type": "nonsense", "id": 7}, "Bad message 'nonsense'"),
        ({"type": "cancel", "id": 7, "colour": "red"}, "colour"),
        ({"type": "fill", "id": 7, "request": {"prefix": 1, "suffix": ""}}, "prefix"),
    ],
)
def test_a_wrong_message_is_answered_and_forgiven(wire, sent, complaint):
    wire.send_bytes(frame(sent))
    reply = wire.reply(7)
    assert isinstance(reply, Failed)
    assert (reply.code, complaint in reply.message) == ("protocol", True)
    wire.fill(1, "quick = ")
    assert texts(wire, 1) == ["1"]


def test_garbage_in_a_frame_is_answered_and_forgiven(wire):
    wire.send_bytes(struct.pack(">I", 5) + b"\xc1\xff\x00\x93\xc1")
    assert code(wire, None) == "protocol"
    wire.fill(1, "quick = ")
    assert texts(wire, 1) == ["1"]


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", MAX_FRAME_NBYTES + 1)])
def test_what_is_no_frame_ends_the_connection_with_a_reason(wire, data):
    wire.send_bytes(data)
    assert code(wire, None) == "protocol"
    assert wire.closed_by_engine()


def test_an_oversized_frame_behind_a_good_one_is_refused_at_once(wire, other):
    wire.send_bytes(pack(StatusQuery(id=1)) + struct.pack(">I", MAX_FRAME_NBYTES + 1))
    assert isinstance(wire.reply(1), StatusReply)
    reply = wire.reply(None)
    assert isinstance(reply, Failed)
    assert str(MAX_FRAME_NBYTES) in reply.message
    assert wire.closed_by_engine()
    other.fill(1, "quick = ")
    assert texts(other, 1) == ["1"]


def test_a_truncated_frame_is_no_work(stranger):
    stranger.handshake()
    stranger.send_bytes(frame({"type": "stop", "id": 1})[:-1])
    stranger.close()


def test_frames_torn_into_bytes_arrive(stranger):
    for byte in pack(Hello(version=VERSION)):
        stranger.send_bytes(bytes([byte]))
    assert isinstance(stranger.receive(), Welcome)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(is_ready=st.booleans(), pieces=st.lists(st.tuples(st.booleans(), st.binary(max_size=80)), max_size=5))
def test_any_bytes_are_survived(place, is_ready, pieces):
    wire = place.connect()
    if is_ready:
        wire.handshake("fuzz")
    # The engine may have closed the connection over an earlier piece.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for framed, piece in pieces:
            wire.send_bytes(struct.pack(">I", len(piece)) + piece if framed else piece)
    wire.close()


def test_a_cancel_that_comes_before_its_fill_changes_nothing(wire):
    wire.send(Cancel(id=1))
    wire.fill(1, "quick = ")
    assert texts(wire, 1) == ["1"]


def test_an_id_in_use_is_refused_and_the_first_goes_on(wire):
    wire.fill(1, "slow = ")
    wire.fill(1, "quick = ")
    assert code(wire, 1) == "bad_request"
    assert texts(wire, 1) == [LONG]


@pytest.mark.parametrize("message", [Stop(id=1), Warm(id=1)])
def test_nothing_is_done_before_the_hello(stranger, message):
    stranger.send(message)
    assert code(stranger, None) == "protocol"
    assert stranger.closed_by_engine()


def test_a_second_hello_is_refused(wire):
    wire.send(Hello(version=VERSION))
    assert code(wire, None) == "protocol"


def test_another_version_is_told_so(stranger):
    stranger.send_bytes(frame({"type": "hello", "version": VERSION + 1, "a_later_field": True}))
    assert code(stranger, None) == "version"
    assert stranger.closed_by_engine()
