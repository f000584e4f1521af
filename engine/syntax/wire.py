"""The wire between the engine and the child that checks syntax: msgpack in frames.

One question is in progress at a time, so none has a number. The child trusts the engine. The engine does not trust the
child, which reads hostile documents with parsers written in C: it accepts an answer that fits its question, or nothing.
"""

from __future__ import annotations

from typing import IO, Any, cast, get_args

from engine.common.errors import MalformedMessage
from engine.common.frames import HEAD_NBYTES, announced, frame, plain, structured, unframe
from engine.syntax.questions import Question, Reply

MOST_NBYTES = 64 * 1024 * 1024


def framed(body: dict[str, Any]) -> bytes:
    """A map as a frame; a document may hold halves of surrogate pairs. Raises BodyError."""
    return frame(body, MOST_NBYTES, "surrogatepass")


def read_frame(source: IO[bytes]) -> dict[str, Any] | None:
    """The next frame of a pipe; None at its end."""
    head = source.read(HEAD_NBYTES)
    return unframe(source.read(announced(head, MOST_NBYTES)), "surrogatepass") if len(head) == HEAD_NBYTES else None


def packed_question(question: Question, budget_ms: float, limit_ms: float) -> bytes:
    """A question as a frame. The child ends itself after `limit_ms` of the processor, whatever it does."""
    return framed({"budget_ms": budget_ms, "limit_ms": limit_ms, "question": plain(question)})


def unpacked_question(message: dict[str, Any]) -> Question:
    return cast(Question, structured(message["question"], cast(Any, Question)))


def packed_reply(reply: Reply | None, *, out_of_time: bool) -> bytes:
    """A reply as a frame; `out_of_time`: the budget was used up."""
    return framed({"reply": plain(reply), "out_of_time": out_of_time})


def unpacked_reply(body: bytes, question: Question) -> tuple[Reply | None, bool]:
    """The reply to a question, and whether its budget was used up. Raises MalformedMessage for anything else."""
    message = unframe(body, "surrogatepass")
    # A question says what it is answered by: it is an `Asks` of that.
    (kind,) = get_args(cast(Any, type(question)).__orig_bases__[0])
    try:
        reply: Reply | None = structured(message.get("reply"), cast(Any, kind | None))
    except ValueError as error:
        raise MalformedMessage(f"It is no answer to the question: {error}.") from None
    if reply is not None and not question.fits(cast(Any, reply)):
        raise MalformedMessage("It is no answer to the question.")
    return reply, message.get("out_of_time") is True
