"""The wire between the engine and the child that checks syntax: msgpack in frames, texts as changes of earlier ones.

One question is under way at a time, so none has a number. The child trusts the engine; the engine does not trust the
child, which reads hostile documents: see `replies`.
"""

from __future__ import annotations

from typing import IO, Any, cast

from engine.analysis.questions import Question, Reply
from engine.core.sequences import common_head, common_tail
from engine.ipc.frames import HEAD_NBYTES, announced, frame, plain, structured, unframe

MOST_NBYTES = 64 * 1024 * 1024
_TEXTS = 8
"""Texts that the child remembers."""
_CHARACTERS = 4 << 20
"""Of these together."""


def framed(body: dict[str, Any]) -> bytes:
    """A map as a frame; a document may hold halves of surrogate pairs. Raises BodyError."""
    return frame(body, MOST_NBYTES, "surrogatepass")


def unpacked(body: bytes) -> dict[str, Any]:
    """The map of a frame's body. Raises MalformedMessage."""
    return unframe(body, "surrogatepass")


class SentTexts:
    """What the child remembers, as the engine knows it."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._numbers = 0

    def packed(self, text: str) -> dict[str, Any]:
        """How to say a text: the number it gets, what it is a change of, and what is new in it."""
        number, head, tail = self._nearest(text)
        if number and self._texts.pop(number) == text:
            coming = number
        else:
            self._numbers += 1
            coming = self._numbers
        forgotten = self._forgotten(len(text))
        self._texts[coming] = text
        new = text[head : len(text) - tail]
        return {"number": coming, "of": number, "head": head, "tail": tail, "new": new, "forget": forgotten}

    def _nearest(self, text: str) -> tuple[int, int, int]:
        """The text that most of this one is a copy of, and how much both begin and end with; 0 where there is none."""
        best = (0, 0, 0)
        for number, known in self._texts.items():
            head = common_head(known, text)
            tail = common_tail(known[head:], text[head:])
            if 2 * (head + tail) > len(text) and head + tail > best[1] + best[2]:
                best = (number, head, tail)
        return best

    def _forgotten(self, coming: int) -> list[int]:
        """Makes room for a text of that size."""
        gone: list[int] = []
        while self._texts and (
            len(self._texts) >= _TEXTS or coming + sum(map(len, self._texts.values())) > _CHARACTERS
        ):
            gone.append(next(iter(self._texts)))
            del self._texts[gone[-1]]
        return gone


class ReceivedTexts:
    """What the child remembers."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def unpacked(self, said: dict[str, Any]) -> str:
        """The text that was said."""
        known = self._texts.pop(said["of"], "")
        text = known[: said["head"]] + said["new"] + known[len(known) - said["tail"] :]
        for number in said["forget"]:
            del self._texts[number]
        self._texts[said["number"]] = text
        return text


def packed_question(question: Question, budget_ms: float, limit_ms: float, texts: SentTexts) -> bytes:
    """A question as a frame. The child ends itself after `limit_ms`, whatever it does."""
    asked = {**plain(question), "text": texts.packed(question.text)}
    return framed({"budget_ms": budget_ms, "limit_ms": limit_ms, "asked": asked})


def unpacked_question(message: dict[str, Any], texts: ReceivedTexts) -> Question:
    """The question of a frame."""
    asked: dict[str, Any] = message["asked"]
    return cast(Question, structured({**asked, "text": texts.unpacked(asked["text"])}, cast(Any, Question)))


def packed_reply(reply: Reply | None, *, out_of_time: bool) -> bytes:
    """A reply as a frame; `out_of_time`: the budget was used up."""
    return framed({"reply": plain(reply), "out_of_time": out_of_time})


def read_frame(source: IO[bytes]) -> dict[str, Any] | None:
    """The next frame of a pipe; None at its end."""
    head = source.read(HEAD_NBYTES)
    return unpacked(source.read(announced(head, MOST_NBYTES))) if len(head) == HEAD_NBYTES else None
