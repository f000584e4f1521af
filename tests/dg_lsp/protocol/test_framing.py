"""Framing that survives garbage; an outbox that never blocks."""

from __future__ import annotations

import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.protocol import framing
from dg_lsp.protocol.framing import Outbox, frame, messages


def read(data: bytes) -> list[bytes]:
    """What is read; an empty body stands for what was lost."""
    return list(messages(io.BytesIO(data)))


@given(st.lists(st.binary(min_size=1, max_size=40)))
def test_what_was_framed_is_read(bodies):
    assert read(b"".join(map(frame, bodies))) == bodies


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data):
    read(data)


@given(st.text(st.sampled_from("abc{}: \r"), max_size=60).map(str.encode), st.booleans())
def test_reading_goes_on_after_garbage(garbage, ends_line):
    """Garbage may end in front of a header's line or within it. It may have been a message."""
    lost = [b""] * bool(garbage.strip())
    assert read(garbage + b"\n" * ends_line + frame(b"{}")) == [*lost, b"{}"]


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\n\r\n",
        b"content-length:2\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: x\r\n\r\n",
        b"Content-Length: 2\n\n",
    ],
)
def test_headers_may_be_spelled_differently(header):
    assert read(header + b"{}") == [b"{}"]


def test_a_body_shorter_than_announced_costs_one_message():
    assert read(b"Content-Length: 5\r\n\r\n{}" + frame(b"[1]") + frame(b"[2]"))[-1] == b"[2]"


def test_a_stream_that_ends_within_a_message_ends():
    assert read(frame(b"{}") + b"Content-Length: 9\r\n\r\n{}") == [b"{}"]


def test_an_oversized_message_is_skipped_and_said_to_be_lost(monkeypatch):
    monkeypatch.setattr(framing, "MAX_MESSAGE_NBYTES", 10)
    assert read(frame(b"x" * 11) + frame(b"{}")) == [b"", b"{}"]


def test_a_client_that_does_not_read_is_given_up(monkeypatch):
    monkeypatch.setattr(framing, "MAX_UNSENT_NBYTES", 1024 * 1024)
    reading, writing = os.pipe()
    broken = threading.Event()
    outbox = Outbox(os.fdopen(writing, "wb"), broken.set)
    for _ in range(20):
        outbox.write(b"x" * 100_000)
    assert broken.is_set()
    os.close(reading)
    outbox.close()


def test_a_client_that_is_gone_is_noticed():
    reading, writing = os.pipe()
    os.close(reading)
    broken = threading.Event()
    outbox = Outbox(os.fdopen(writing, "wb"), broken.set)
    outbox.write(b"x")
    assert broken.wait(5)
    outbox.write(b"x")
    outbox.close()
    assert broken.is_set()


def test_closing_writes_what_waits():
    reading, writing = os.pipe()
    outbox = Outbox(os.fdopen(writing, "wb"), lambda: None)
    outbox.write(b"one")
    outbox.write(b"two")
    outbox.close()
    assert os.read(reading, 10) == b"onetwo"
    os.close(reading)
