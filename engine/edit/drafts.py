"""Drafts of work on a part of a text, shown as drafts of the whole."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from engine.core.request import Draft
from engine.decoding.executor import Step, T, Work


def drafted_between(before: str, after: str, work: Work[T]) -> Work[T]:
    """The same work, the text of its drafts between two others."""
    try:
        wanted = next(work)
        while True:
            if isinstance(wanted, Step):
                wanted = Step(rows=wanted.rows, draft=_between(before, after, wanted.draft))
            wanted = work.send((yield wanted))
    except StopIteration as end:
        return end.value
    finally:
        work.close()


def _between(before: str, after: str, draft: Callable[[], Draft]) -> Callable[[], Draft]:
    def whole() -> Draft:
        drawn = draft()
        return replace(drawn, text=before + drawn.text + after)

    return whole
