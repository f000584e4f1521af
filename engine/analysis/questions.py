"""What is asked about documents, and the answers: plain values, so that another process can be asked.

Nothing here parses. `engine.analysis.checks` answers, in this process or in one of its own (`engine.analysis.child`);
None in the place of an answer means that nobody could tell in time.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from engine.core.findings import Damage, Findings
from engine.syntax.verdict import Verdict

R = TypeVar("R")


class Asks(Generic[R]):
    """A question that is answered by an `R`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A fill as it may be offered, and what it does to the syntax of its file."""

    text: str
    verdict: Verdict | None
    """None: unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements:
    """One for each fill; None where nothing of it is left to offer."""

    fills: tuple[Judged | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFills(Asks[Judgements]):
    """What becomes of a document with each of `fills` in the place of `text[start:end]`."""

    text: str
    start: int
    end: int
    language: str
    """`Grammar.name`, here and below."""
    fills: tuple[str, ...]
    whole: bool = False
    """Whether a fill stands for text that is there: then no part of it will do. Others are trimmed to what belongs in
    the gap."""
    cut: bool = False
    """Cut what is broken to its longest head that is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """How broken a text is."""

    severity: tuple[int, int]
    """Orders texts; see `ParsedText.severity`."""
    damages: tuple[Damage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnose(Asks[Diagnosis]):
    """Where a text is broken."""

    text: str
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Better:
    """A text that makes its document less broken: its index, and how broken the document then is."""

    index: int
    severity: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of the first `count` texts."""

    count: int
    better: tuple[Better, ...]
    spent_ms: float
    """Of processor time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryEdits(Asks[Tried]):
    """Which of `texts` make a broken document better in the place of `text[start:end]`; `most` of them will do."""

    text: str
    language: str
    start: int
    end: int
    texts: tuple[str, ...]
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyText(Asks[Findings]):
    """What a text offers to somebody at a place in it."""

    text: str
    language: str
    cursor: int


Question = JudgeFills | Diagnose | TryEdits | SurveyText
Reply = Judgements | Diagnosis | Tried | Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A question that somebody waits for."""

    question: Question
    budget_ms: float
    """Of processor time."""
    left_ms: float = math.inf
    """After so long, by the clock on the wall, the answer is of no use any more."""


_LEAST_MS = 50.0
"""A fill that its deadline stopped is still checked: a broken one is worse than one that is so much later."""


def asked(question: Asks[R], budget_ms: float, left_ms: float = math.inf) -> Generator[Check, Reply | None, R | None]:
    """Ask, from work that is run step by step (see engine.decoding.executor); None where nobody could tell in time."""
    left_ms = max(left_ms, _LEAST_MS)
    check = Check(question=cast(Question, question), budget_ms=min(budget_ms, left_ms), left_ms=left_ms)
    return cast("R | None", (yield check))
