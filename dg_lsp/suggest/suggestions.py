"""Earlier suggestions, served again while the user types them.

A suggestion predicts the whole document: `base` with [start, end) replaced by `text`. It fits as long as the document
before the cursor is the start of that text and the document after the cursor is its end. So typing along, auto-closed
brackets, undo and redo need no bookkeeping: only the text counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import dropwhile

from dg_lsp.suggest.insertion import FittedInsertion, fit
from engine.common.names import is_name_character
from engine.common.sequences import common_head

REMEMBERED = 16
_TAKEN_CHARS = 200
"""How many characters before a suggestion may be deleted, with one line break, before it is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """`text` in place of [start, end) of `base`."""

    id: int
    base: str
    start: int
    end: int
    text: str
    confidence: float
    origin: str = ""
    """The place of a workspace match, "from src/shapes.py:12"; empty: the model wrote it."""

    def remainder(self, text: str, cursor: int) -> Remainder | None:
        """The rest to insert into a document that fits this suggestion; None where it does not fit."""
        tail_end = len(text) - (len(self.base) - self.end)
        if tail_end < cursor:
            return None
        remaining = self._remaining(text, cursor)
        if not remaining or not text.endswith(self.base[self.end :]):
            return None
        tail = text[cursor:tail_end]
        fitting = (
            FittedInsertion(text=remaining, swallowed=len(tail))
            if self._replaces(tail)
            else fit(_line_before(text, cursor), remaining, tail)
        )
        if fitting is None or not fitting.text:
            return None
        return Remainder(
            suggestion=self,
            start=min(cursor, self.start),
            cursor=cursor,
            end=cursor + fitting.swallowed,
            text=fitting.text,
        )

    def guess(self, text: str, cursor: int) -> str:
        """The likely rest after the user typed another name than suggested: what follows that name."""
        if cursor < self.start or not text.startswith(self.base[: self.start]):
            return ""
        typed = text[self.start : cursor]
        same = common_head(typed, self.text)
        while same and is_name_character(self.text[same - 1]):
            same -= 1
        left, instead = _after_name(self.text[same:]), _after_name(typed[same:])
        return left[len(instead) :] if left.startswith(instead) else ""

    def is_finished(self, text: str) -> bool:
        size = len(self.base) - (self.end - self.start) + len(self.text)
        return (
            len(text) == size
            and text.startswith(self.text, self.start)
            and text.startswith(self.base[: self.start])
            and text.endswith(self.base[self.end :])
        )

    @property
    def outcome_end(self) -> int:
        """The offset where the suggestion ends once it is inserted."""
        return self.start + len(self.text)

    def _replaces(self, tail: str) -> bool:
        """Whether nothing but closers that it takes the place of stand between the cursor and what follows."""
        said = "\n" in tail or any(map(is_name_character, tail))
        return bool(tail) and not said and self.base[self.start : self.end].endswith(tail)

    def _remaining(self, text: str, cursor: int) -> str:
        if cursor < self.start:
            # Text before the suggestion was deleted; typing it again leads here.
            near = self.start - cursor <= _TAKEN_CHARS and self.base.count("\n", cursor, self.start) <= 1
            return self.base[cursor : self.start] + self.text if near and self.base.startswith(text[:cursor]) else ""
        typed = text[self.start : cursor]
        agrees = self.text.startswith(typed) and text.startswith(self.base[: self.start])
        return self.text[len(typed) :] if agrees else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """The part of a suggestion that is not in the document yet. All offsets are the current document's."""

    suggestion: Suggestion
    start: int
    """Where the suggestion begins; what was typed of it is [start, cursor)."""
    cursor: int
    end: int
    """`text` replaces [cursor, end)."""
    text: str

    @property
    def reaches_back(self) -> bool:
        """Whether text before the suggestion was deleted."""
        return self.cursor < self.suggestion.start

    def up_to_cursor(self, text: str) -> Remainder | None:
        """The same outcome without replacing text after the cursor; None where that is impossible or adds nothing.

        `text`: the current document.
        """
        kept = text[self.cursor : self.end]
        added = self.text.removesuffix(kept)
        return replace(self, end=self.cursor, text=added) if added and self.text.endswith(kept) else None


class SuggestionCache:
    def __init__(self) -> None:
        self._held: deque[Suggestion] = deque(maxlen=REMEMBERED)

    def put(self, suggestion: Suggestion) -> Suggestion:
        """Add it as the newest; of two equal ones the older is kept."""
        for held in self._held:
            if (
                replace(held, id=suggestion.id, confidence=suggestion.confidence, origin=suggestion.origin)
                == suggestion
            ):
                self._held.remove(held)
                suggestion = held
                break
        self._held.append(suggestion)
        return suggestion

    def remainders(self, text: str, cursor: int) -> Iterator[Remainder]:
        """The suggestions that still fit here, newest first, each text once."""
        seen = set[str]()
        for suggestion in reversed(self._held):
            remainder = suggestion.remainder(text, cursor)
            if remainder is not None and remainder.text not in seen:
                seen.add(remainder.text)
                yield remainder

    def guess(self, text: str, cursor: int) -> str:
        """What the newest suggestion leads to expect here though it does not fit; may be empty."""
        return self._held[-1].guess(text, cursor) if self._held else ""

    def finished(self, text: str) -> Suggestion | None:
        """The suggestion that the document has just become, if any."""
        return next((held for held in reversed(self._held) if held.is_finished(text)), None)


def _line_before(text: str, cursor: int) -> str:
    return text[max(text.rfind("\n", 0, cursor), text.rfind("\r", 0, cursor)) + 1 : cursor]


def _after_name(text: str) -> str:
    return "".join(dropwhile(is_name_character, text))
