"""Messages: what goes in comes out, and whatever else comes is named and changes nothing."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.common.analysis import Analysis, Placeholder, SyntaxErrorRegion
from engine.common.errors import MalformedMessage, VersionMismatch
from engine.common.frames import frame
from engine.common.messages import (
    Analyze,
    AnalyzeReply,
    Cancel,
    Done,
    Drafted,
    EngineState,
    EngineStatus,
    Failed,
    Fill,
    FillReply,
    Hello,
    Notice,
    Percentiles,
    Proof,
    StatusQuery,
    StatusReply,
    Stop,
    Warm,
    Welcome,
)
from engine.common.protocol import VERSION, pack, unpack_from_client, unpack_from_engine
from engine.common.request import Candidate, Cell, Draft, Filled, FillRequest, RecentEdit, Snippet, Timings

REQUEST = {"prefix": "a", "suffix": "b"}
FULL_REQUEST = FillRequest(
    prefix="def f():\n    😋",
    suffix="\r\n",
    language="python",
    task="rewrite",
    old="old",
    snippets=(Snippet(path="a.py", text="x = 1"),),
    edits=(RecentEdit(path="b.py", old="y = 1", new="z = 1"),),
    instruction="shorter",
    n=3,
    max_tokens=12,
    width=9,
    deadline_ms=250,
    seed=2**63 - 1,
    strength=0.3,
    keep=((0, 1), (2, 3)),
    single_line=True,
)
CANDIDATE = Candidate(text="x", tokens=1, confidence=0.5, score=-1.0, syntax="repaired", token_confidence=(0.5,))
STATE = EngineState(name="loading", percent=12.5, message="On its way.")
STATUS = EngineStatus(
    pid=1,
    engine="0.1.0",
    protocol=1,
    model="bundled",
    device="cpu",
    requested_device="auto",
    unload_after_s=600.0,
    exit_after_s=1800.0,
    stall_after_s=300.0,
    state=STATE,
    up_s=1.5,
    rss_nbytes=1,
    device_nbytes=0,
    clients=("nvim",),
    queued=0,
    running=1,
    served=2,
    failed={"busy": 1},
    total_ms=Percentiles(p50=1.0, p95=2.0),
    log="/log",
)


@pytest.mark.parametrize(
    "message",
    [
        Hello(version=VERSION, client="nvim", package="0.1.0", nonce=b"\x00\xff"),
        Proof(proof=b"\x00\xff"),
        Fill(id=1, request=FULL_REQUEST, document="file:///a.py", priority="background", drafts=True),
        Analyze(id=6, text="x = (😋", cursor=6, language="python"),
        Cancel(id=2),
        Warm(id=3),
        StatusQuery(id=4),
        Stop(id=5),
    ],
)
def test_a_clients_message_arrives_as_it_was_sent(message):
    assert unpack_from_client(pack(message)[4:]) == message


@pytest.mark.parametrize(
    "message",
    [
        Welcome(version=VERSION, engine="0.1.0", pid=1, model="bundled", device="auto", state=STATE),
        Drafted(id=1, draft=Draft(step=3, text="x", cells=(Cell(text="x", state="accepted"),))),
        FillReply(
            id=1,
            filled=Filled(
                model="m", device="cpu", candidates=(CANDIDATE,), width=4, steps=2, forwards=2, ms=Timings(total=1.0)
            ),
        ),
        AnalyzeReply(
            id=1,
            analysis=Analysis(
                errors=(SyntaxErrorRegion(start=0, end=5, what="missing )", spots=(5, 3)),),
                placeholder=Placeholder(kind="body", start=1, end=2, before="\n", after="\n", single_line=False),
            ),
        ),
        Done(id=1),
        Failed(id=None, code="busy", message="Busy."),
        Notice(state=STATE),
        StatusReply(id=1, status=STATUS),
    ],
)
def test_an_engines_message_arrives_as_it_was_sent(message):
    assert unpack_from_engine(pack(message)[4:]) == message


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"type": "nonsense", "id": 7}, "Bad message 'nonsense'.*type"),
        ({"id": 7}, "Bad message.*`type`"),
        ({"type": "fillreply", "id": 7}, "Bad message 'fillreply'.*type"),
        ({"type": "fill", "id": 7}, "request"),
        ({"type": "fill", "id": 7, "request": REQUEST, "colour": 1}, "colour"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "colour": 1}}, "colour"),
        ({"type": "fill", "id": 7, "request": {"prefix": "a"}}, "suffix"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "prefix": b"a"}}, "prefix"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "n": "1"}}, "request.n"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "n": True}}, "Expected `int`.*request.n"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "n": 0}}, "`int` >= 1 - at `..request.n"),
        (
            {"type": "fill", "id": 7, "request": {**REQUEST, "max_tokens": 10**6}},
            "<= 4096 - at `..request.max",
        ),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "width": 0}}, "request.width"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "deadline_ms": float("nan")}}, "request.deadline_ms"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "seed": -1}}, "request.seed"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "strength": 0}}, "request.strength"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "keep": [[0, 1]]}}, "keep` must"),
        ({"type": "fill", "id": 7, "request": {**REQUEST, "task": "guess"}}, "guess.*request.task"),
        ({"type": "fill", "id": 7, "request": REQUEST, "priority": "urgent"}, "urgent.*priority"),
        ({"type": "analyze", "id": 7, "text": "ab", "cursor": 3, "language": ""}, "cursor` must be"),
        ({"type": "analyze", "id": 7, "text": "ab", "cursor": -1, "language": ""}, "cursor` must be"),
    ],
)
def test_a_wrong_message_is_named_with_its_id(fields, complaint):
    with pytest.raises(MalformedMessage, match=complaint) as raised:
        unpack_from_client(frame(fields)[4:])
    assert raised.value.id == 7


def test_a_type_that_is_nested_deeply_is_no_type():
    with pytest.raises(MalformedMessage):
        unpack_from_client(b"\x81\xa4type" + b"\x91" * 1000 + b"\x90")


def test_a_megabyte_in_the_wrong_place_is_not_quoted_back():
    fields = {"type": "fill", "id": 7, "request": REQUEST, "priority": "x" * 2**20}
    with pytest.raises(MalformedMessage) as raised:
        unpack_from_client(frame(fields)[4:])
    assert len(str(raised.value)) < 500
    assert "priority" in str(raised.value)


@pytest.mark.parametrize("unpack", [unpack_from_client, unpack_from_engine])
def test_another_version_is_told_apart_from_nonsense(unpack):
    tag = "hello" if unpack is unpack_from_client else "welcome"
    with pytest.raises(VersionMismatch, match=f"version {VERSION + 1}"):
        unpack(frame({"type": tag, "version": VERSION + 1, "a_later_field": 1})[4:])


keys = st.sampled_from(["type", "id", "version", "request", "document", "priority", "drafts", "client", "nonce", "x"])
tags = st.sampled_from(["hello", "fill", "analyze", "cancel", "warm", "statusquery", "stop", "x"])
leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
fields = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)


@given(st.dictionaries(keys, fields), tags)
def test_no_map_raises_anything_unforeseen(body, tag):
    packed = msgpack.packb({**body, "type": tag})
    for unpack in (unpack_from_client, unpack_from_engine):
        with contextlib.suppress(MalformedMessage, VersionMismatch):
            assert unpack(packed)


@given(st.binary())
def test_no_bytes_raise_anything_unforeseen(body):
    for unpack in (unpack_from_client, unpack_from_engine):
        with pytest.raises(MalformedMessage):
            unpack(body)


def test_the_protocol_and_the_client_never_import_torch():
    modules = "engine.common.protocol, dg_lsp.backend.client"
    code = f"import sys, {modules}; assert not {{'torch', 'transformers'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
