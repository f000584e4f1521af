"""Documents that killed the syntax process, or use up all their time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.common.sequences import common_head, common_tail

DEATHS = 2
"""Deaths after which a document is set aside."""
ASIDE_S = 600.0
"""Seconds after which a document is tried again: it may have changed."""
_KEPT = 16
_LEAST_MS = 10.0


@dataclass(slots=True)
class _Suspect:
    text: str
    language: str
    deaths: int = 0
    out_of_time: int = 0
    """Times that it ran out of time lately, minus times that it did not."""
    aside_until: float = 0.0


class Suspects:
    """Recognises a document by its text; a text that shares most of it is an edit of the same document."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._all: list[_Suspect] = []

    @property
    def aside(self) -> int:
        """The number of documents set aside."""
        now = self._clock()
        return sum(each.aside_until > now for each in self._all)

    def is_aside(self, text: str, language: str) -> bool:
        """Whether a document is set aside: it is no longer checked."""
        found = self._find(text, language)
        return found is not None and found.aside_until > self._clock()

    def budget_ms(self, text: str, language: str, usual_ms: float) -> float:
        """Time for a document in milliseconds: halved each time that it was too short."""
        found = self._find(text, language)
        return max(min(usual_ms, _LEAST_MS), usual_ms / 2**found.out_of_time) if found else usual_ms

    def accuse(self, text: str, language: str) -> bool:
        """Note that a document killed the process; returns whether it is now set aside."""
        found = self._named(text, language)
        found.deaths += 1
        if found.deaths >= DEATHS:
            # One more death, and it is set aside again.
            found.deaths, found.aside_until = DEATHS - 1, self._clock() + ASIDE_S
            return True
        return False

    def took(self, text: str, language: str, *, out_of_time: bool) -> None:
        """Note that the process survived a document, and whether time ran out."""
        if out_of_time:
            found = self._named(text, language)
            found.out_of_time = min(found.out_of_time + 1, 16)
        elif found := self._find(text, language):
            found.out_of_time = max(found.out_of_time - 1, 0)
            if not (found.out_of_time or found.deaths):
                self._all.remove(found)

    def _find(self, text: str, language: str) -> _Suspect | None:
        for each in self._all:
            if each.language == language and _is_edit(each.text, text):
                each.text = text
                return each
        return None

    def _named(self, text: str, language: str) -> _Suspect:
        found = self._find(text, language)
        if found is None:
            found = _Suspect(text, language)
            self._all = [*self._all, found][-_KEPT:]
        return found


def _is_edit(old: str, new: str) -> bool:
    head = common_head(old, new)
    return 2 * (head + common_tail(old[head:], new[head:])) >= max(len(old), len(new))
