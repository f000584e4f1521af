"""Drafts of work on a part of a text, shown as drafts of the whole."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TypeVar

from torch import Tensor

from engine.core.request import Draft
from engine.decoding.executor import Step

T = TypeVar("T")


def drafted_between(before: str, after: str, work: Generator[Step, Tensor, T]) -> Generator[Step, Tensor, T]:
    """The same work, the text of its drafts between two others."""
    try:
        step = next(work)
        while True:
            step = work.send((yield Step(rows=step.rows, draft=_between(before, after, step.draft))))
    except StopIteration as end:
        return end.value
    finally:
        work.close()


def _between(before: str, after: str, draft: Callable[[], Draft]) -> Callable[[], Draft]:
    def whole() -> Draft:
        drawn = draft()
        return replace(drawn, text=before + drawn.text + after)

    return whole
