"""The wire between the engine and the child that checks syntax: msgpack in frames.

One question is under way at a time, so none has a number. The child trusts the engine; the engine does not trust the
child, which reads hostile documents: see `replies`.
"""

from __future__ import annotations

from typing import IO, Any, cast

from engine.analysis.questions import Question, Reply
from engine.ipc.frames import HEAD_NBYTES, announced, frame, plain, structured, unframe

MOST_NBYTES = 64 * 1024 * 1024


def framed(body: dict[str, Any]) -> bytes:
    """A map as a frame; a document may hold halves of surrogate pairs. Raises BodyError."""
    return frame(body, MOST_NBYTES, "surrogatepass")


def unpacked(body: bytes) -> dict[str, Any]:
    """The map of a frame's body. Raises MalformedMessage."""
    return unframe(body, "surrogatepass")


def packed_question(question: Question, budget_ms: float, limit_ms: float) -> bytes:
    """A question as a frame. The child ends itself after `limit_ms`, whatever it does."""
    return framed({"budget_ms": budget_ms, "limit_ms": limit_ms, "asked": plain(question)})


def unpacked_question(message: dict[str, Any]) -> Question:
    """The question of a frame."""
    return cast(Question, structured(message["asked"], cast(Any, Question)))


def packed_reply(reply: Reply | None, *, out_of_time: bool) -> bytes:
    """A reply as a frame; `out_of_time`: the budget was used up."""
    return framed({"reply": plain(reply), "out_of_time": out_of_time})


def read_frame(source: IO[bytes]) -> dict[str, Any] | None:
    """The next frame of a pipe; None at its end."""
    head = source.read(HEAD_NBYTES)
    return unpacked(source.read(announced(head, MOST_NBYTES))) if len(head) == HEAD_NBYTES else None
