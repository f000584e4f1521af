"""What the engine takes from the child that checks syntax: an answer to what it asked, or nothing.

The child reads hostile documents with parsers written in C; what it says may be anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from engine.analysis.questions import (
    AnalyzeText,
    Diagnose,
    Diagnosis,
    Judged,
    JudgeFills,
    Judgements,
    Question,
    Reply,
    Tried,
    TryEdits,
)
from engine.analysis.wire import unpacked
from engine.core.analysis import Analysis, SyntaxErrorRegion
from engine.core.errors import MalformedMessage
from engine.ipc.frames import structured

_REPLIES: dict[type[Question], type[Reply]] = {
    JudgeFills: Judgements,
    Diagnose: Diagnosis,
    TryEdits: Tried,
    AnalyzeText: Analysis,
}


def unpacked_reply(body: bytes, question: Question) -> tuple[Reply | None, bool]:
    """The reply to a question, and whether its budget was used up. Raises MalformedMessage for anything else."""
    message = unpacked(body)
    try:
        reply: Reply | None = structured(message.get("reply"), cast(Any, _REPLIES[type(question)] | None))
    except ValueError as error:
        raise MalformedMessage(f"It is no answer to the question: {error}.") from None
    if reply is not None and not _answers(reply, question):
        raise MalformedMessage("It is no answer to the question.")
    return reply, message.get("out_of_time") is True


def _answers(reply: Reply, question: Question) -> bool:
    """Whether it is about that question: who reads it relies on places and texts."""
    match question, reply:
        case JudgeFills(), Judgements():
            pairs = list(zip(question.fills, reply.fills, strict=False))
            return len(pairs) == len(question.fills) == len(reply.fills) and all(
                judged is None or (fill.startswith(judged.text) and _lies_within(judged, len(fill)))
                for fill, judged in pairs
            )
        case TryEdits(), Tried():
            return 0 < reply.count <= len(question.texts) and all(
                0 <= each.index < reply.count for each in reply.better
            )
        case Diagnose(), Diagnosis():
            return _lie_in(reply.damages, len(question.text))
        case AnalyzeText(), Analysis():
            blank = reply.blank
            fits = blank is None or 0 <= blank.start <= blank.end <= len(question.text)
            return fits and _lie_in(reply.damages, len(question.text))
        case _:
            return False


def _lies_within(judged: Judged, size: int) -> bool:
    problems = judged.verdict.problems if judged.verdict else ()
    return all(0 <= problem.start <= problem.end <= size for problem in problems)


def _lie_in(damages: Sequence[SyntaxErrorRegion], size: int) -> bool:
    return all(
        0 <= each.start <= each.end <= size and all(0 <= spot <= size for spot in each.spots) for each in damages
    )
