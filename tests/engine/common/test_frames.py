"""Frames survive being torn apart, and nothing on the wire can do more than raise the two errors there are."""

from __future__ import annotations

import contextlib
import itertools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.common.errors import BodyError, FrameError, MalformedMessage
from engine.common.frames import MAX_FRAME_NBYTES, FrameSplitter, frame, unframe

leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=4)
maps = st.dictionaries(st.text(), values, max_size=4)


@st.composite
def torn_streams(draw: st.DrawFn) -> tuple[list[dict[str, object]], list[bytes]]:
    """Some maps, and the pieces that their frames arrive in."""
    bodies = draw(st.lists(maps, max_size=4))
    stream = b"".join(frame(body) for body in bodies)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    return bodies, [stream[start:end] for start, end in itertools.pairwise(edges)]


@settings(max_examples=40)
@given(torn_streams())
def test_frames_come_out_as_they_went_in_however_they_are_torn(torn):
    bodies, pieces = torn
    splitter = FrameSplitter()
    found = [unframe(body) for piece in pieces for body in splitter.feed(piece)]
    assert found == bodies
    assert not splitter.mid_frame


@given(st.lists(st.binary(max_size=64), max_size=8))
def test_garbage_raises_nothing_but_what_is_foreseen(pieces):
    splitter = FrameSplitter()
    for piece in pieces:
        try:
            for body in splitter.feed(piece):
                with contextlib.suppress(MalformedMessage):
                    assert isinstance(unframe(body), dict)
        except FrameError:
            return


def test_an_oversized_frame_is_refused_at_its_announcement():
    with pytest.raises(FrameError, match=str(MAX_FRAME_NBYTES)):
        next(FrameSplitter().feed(struct.pack(">I", MAX_FRAME_NBYTES + 1)))


def test_what_came_before_an_oversized_frame_is_not_lost_and_the_error_comes_at_once():
    bodies = FrameSplitter().feed(frame({"a": 1}) + struct.pack(">I", 2**32 - 1))
    assert unframe(next(bodies)) == {"a": 1}
    with pytest.raises(FrameError):
        next(bodies)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"text": "x" * MAX_FRAME_NBYTES}, "send less text"),
        ({"text": "\ud83d"}, "surrogate"),
        ({"number": 2**64}, "64 bits"),
    ],
)
def test_what_cannot_be_sent_is_named_before_it_is_sent(body, complaint):
    with pytest.raises(BodyError, match=complaint):
        frame(body)
