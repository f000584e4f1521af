"""Where an answer ends for a client (stop words, indentation), and which part of a draft can be sent already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.common.newlines import with_line_ends
from engine.common.request import Candidate, Draft
from engine.common.sequences import common_head, overlaps

StopType = Literal["eos", "limit", "word"]
_TELLING = 256
"""Most characters of a stop word that are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endings:
    """Conditions that end an answer early."""

    stop: tuple[str, ...] = ()
    """Stop words: the answer ends before the first of them."""
    indent: int = 0
    """Least indentation of lines after the first, in spaces and tabs: the answer ends before a line with less; blank
    lines do not count."""
    line_end: str = "\n"
    """The line end of the texts."""
    follows: str = ""
    """The beginning of the text after the gap, without leading blanks: no answer may end with it."""

    def cut(self, text: str) -> tuple[str, StopType, str]:
        """A text up to its end, the reason of the end, and the stop word."""
        found = [(at, word) for word in self.stop if (at := text.find(self._written(word))) >= 0]
        at, word = min(found, default=(len(text), ""))
        outdented = self._outdented(text)
        if outdented < at:
            return text[:outdented], "limit", ""
        return text[:at], "word" if word else "eos", word

    def ready(self, text: str) -> str:
        """The part of an unfinished text that is final."""
        # Before the ending that is there, a longer word may have begun.
        held = max((_begun(self._written(word), text) for word in self.stop), default=0)
        held = max(held, _said_again(text, self.follows))
        if self.indent and text.rpartition(self.line_end)[2].strip() == "":
            # How far the line is indented is not known yet.
            held = max(held, len(text) - len(text.rstrip()))
        elif self.indent:
            held = max(held, _begun(self.line_end, text))
        return self.cut(text)[0][: len(text) - held]

    def _outdented(self, text: str) -> int:
        """The line break before the first line with too little indentation; without one the text's end."""
        at = text.find(self.line_end) if self.indent else -1
        while at >= 0:
            begin = at + len(self.line_end)
            line = text[begin:].partition(self.line_end)[0]
            if line.strip() and len(line) - len(line.lstrip(" \t")) < self.indent:
                return at
            at = text.find(self.line_end, begin)
        return len(text)

    def _written(self, word: str) -> str:
        """A stop word with the text's line ends."""
        return with_line_ends(word, self.line_end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """One answer as a client gets it."""

    text: str
    tokens: int
    reason: StopType
    word: str = ""
    """The stop word."""
    pieces: tuple[str, ...] = ()
    """Its tokens; the first holds what earlier canvases of a long gap said, too."""
    confidence: tuple[float, ...] = ()
    """One for each of `pieces`."""


NOTHING = Completed(text="", tokens=0, reason="eos")
LATE = Completed(text="", tokens=0, reason="limit")


def completed(candidate: Candidate, endings: Endings, max_tokens: int) -> Completed:
    """A candidate as a client gets it."""
    text, reason, word = endings.cut(candidate.text)
    starts = (0, *candidate.token_ends[:-1])
    spans = [(start, end) for start, end in zip(starts, candidate.token_ends, strict=False) if start < len(text)]
    dropped = len(candidate.token_ends) - len(spans)
    return Completed(
        text=text,
        tokens=candidate.tokens - dropped,
        reason="limit" if reason == "eos" and candidate.tokens >= max_tokens else reason,
        word=word,
        pieces=tuple(text[start:end] for start, end in spans),
        confidence=candidate.token_confidence[: len(spans)],
    )


class Settling:
    """Sends the drafts of a fill from the left, as far as they are final."""

    def __init__(self, endings: Endings) -> None:
        self._endings = endings
        self._before = ""
        self._sent = ""

    def more(self, draft: Draft) -> str:
        """The text that a draft adds: it must be settled in this draft and in the one before."""
        settled = with_line_ends(draft.text[: draft.settled], self._endings.line_end)
        stands, self._before = settled[: common_head(self._before, settled)], settled
        ready = self._endings.ready(stands)
        # What turns out to be blank is not offered at all.
        return self._send(ready) if ready.strip() else ""

    def rest(self, text: str) -> str:
        """The text that the answer adds. If the final answer contradicts what was streamed, the stream ends there."""
        return self._send(text)

    def _send(self, text: str) -> str:
        if not text.startswith(self._sent):
            return ""
        piece, self._sent = text[len(self._sent) :], text
        return piece


def _said_again(text: str, follows: str) -> int:
    """The length of the end of a text that may repeat the text after the gap."""
    said = text.rstrip()
    size = next(overlaps(said, follows), 0)
    return len(text) - len(said[: len(said) - size].rstrip()) if follows else 0


def _begun(word: str, text: str) -> int:
    """The length of the end of a text that may begin a word which is not in it. A long word is recognised by its
    beginning."""
    most = min(len(word) - 1, len(text))
    if most >= _TELLING and (at := text.find(word[:_TELLING], len(text) - most)) >= 0:
        return len(text) - at
    return next(overlaps(text, word[: min(len(word) - 1, _TELLING)]), 0)
