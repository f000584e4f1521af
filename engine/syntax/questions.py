"""Questions about documents and their answers, as plain values, so that another process can answer.

Nothing here parses. `engine.syntax.checks` answers, in this process or in one of its own (`engine.syntax.child`); None
in place of an answer means that it was not found in time.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from engine.common.analysis import Analysis, Placeholder, Rewritable, SyntaxErrorRegion
from engine.common.wire import Wire
from engine.syntax.problems import Problem
from engine.syntax.roles import SpanRole
from engine.syntax.signatures import SpanEdit
from engine.syntax.verdict import Verdict

R = TypeVar("R")


class Asks(Wire, Generic[R], frozen=True, tag=True):
    """A question whose answer is an `R`."""

    def fits(self, reply: R) -> bool:
        """Whether an answer belongs to this question: places and texts in it can then be relied on."""
        raise NotImplementedError


class ValidatedFill(Wire, frozen=True, kw_only=True):
    """The part of a fill that may be offered, and what it does to the syntax of its file."""

    text: str
    verdict: Verdict | None
    """None: unchecked."""
    swallowed: int = 0
    """Characters after the gap that it replaces."""


class Validations(Wire, frozen=True, kw_only=True):
    """One for each fill; None: no part of it may be offered."""

    fills: tuple[ValidatedFill | None, ...]


class ValidateFills(Asks[Validations], frozen=True, kw_only=True):
    """The validated parts of `fills`, each in place of `text[start:end]`."""

    text: str
    start: int
    end: int
    language: str
    """`Grammar.name`, in all questions."""
    fills: tuple[str, ...]
    whole: bool = False
    """Whether a fill replaces existing text: then it is validated whole. Other fills are trimmed to the gap's
    extent."""
    cut: bool = False
    """Whether a broken fill is cut to its longest valid head."""
    may_swallow: bool = False
    """Whether a fill may replace closers after the gap that it closes itself."""

    def fits(self, reply: Validations) -> bool:
        pairs = list(zip(self.fills, reply.fills, strict=False))
        return len(pairs) == len(self.fills) == len(reply.fills) and all(
            judged is None
            or (fill.startswith(judged.text) and _lie_in(judged.verdict.problems if judged.verdict else (), len(fill)))
            for fill, judged in pairs
        )


class Diagnosis(Wire, frozen=True, kw_only=True):
    severity: tuple[int, int]
    """How broken the document is; see `ParsedText.severity`."""
    errors: tuple[SyntaxErrorRegion, ...]


class Diagnose(Asks[Diagnosis], frozen=True, kw_only=True):
    text: str
    language: str

    def fits(self, reply: Diagnosis) -> bool:
        return _regions_lie_in(reply.errors, len(self.text))


class Tried(Wire, frozen=True, kw_only=True):
    """The result for the first texts."""

    severities: tuple[tuple[int, int] | None, ...]
    """How broken the document is with each text; None: not less than before."""
    spent_ms: float
    """Processor time spent."""


class TryEdits(Asks[Tried], frozen=True, kw_only=True):
    """The `texts` that make a broken document better in place of `text[start:end]`; the search ends after `most` of
    them."""

    text: str
    language: str
    start: int
    end: int
    texts: tuple[str, ...]
    most: int

    def fits(self, reply: Tried) -> bool:
        return 0 < len(reply.severities) <= len(self.texts)


class Inserted(Wire, frozen=True, kw_only=True):
    """One token that makes its document less broken."""

    at: int
    new: str
    removed: int
    cost: float
    """This and the fields above: see `engine.syntax.insertions`."""
    severity: tuple[int, int]


class Insertions(Wire, frozen=True, kw_only=True):
    """The result for the first `count` insertions, likeliest first."""

    count: int
    found: tuple[Inserted, ...]
    done: bool
    """Whether no other insertion is worth a try."""
    spent_ms: float
    """Processor time spent."""


class TryInsertions(Asks[Insertions], frozen=True, kw_only=True):
    """Single tokens near an error region that make a broken document better."""

    text: str
    language: str
    region: SyntaxErrorRegion
    start: int
    end: int
    """The token goes into `text[start:end]`, or to either end of it."""
    skip: int = 0
    """The number of insertions that were tried already."""
    limit: float = math.inf
    """Highest cost of an insertion that is tried."""

    def fits(self, reply: Insertions) -> bool:
        places = all(self.start <= each.at <= each.at + each.removed <= self.end for each in reply.found)
        return places and (reply.done or reply.count > 0)


class AnalyzeText(Asks[Analysis], frozen=True, kw_only=True):
    """Places and rewrites that a list of code actions needs."""

    text: str
    language: str
    cursor: int
    start: int | None = None
    """The beginning of a selection that ends at the cursor."""

    def fits(self, reply: Analysis) -> bool:
        spans, size = (*reply.rewrites, *([reply.placeholder] if reply.placeholder else ())), len(self.text)
        return _lie_in(spans, size) and _regions_lie_in(reply.errors, size)


class Roles(Wire, frozen=True, kw_only=True):
    """One for each span."""

    spans: tuple[SpanRole, ...]


class RolesOf(Asks[Roles], frozen=True, kw_only=True):
    """The roles of spans of a text."""

    text: str
    language: str
    spans: tuple[tuple[int, int], ...]

    def fits(self, reply: Roles) -> bool:
        return len(reply.spans) == len(self.spans)


class SpanEdits(Wire, frozen=True, kw_only=True):
    edits: tuple[SpanEdit, ...]


class CallsToChange(Asks[SpanEdits], frozen=True, kw_only=True):
    """The new text of calls in `text`, if the lines from `start` on changed a signature."""

    before: str
    text: str
    language: str
    start: int

    def fits(self, reply: SpanEdits) -> bool:
        size = len(self.text)
        return _lie_in(reply.edits, size) and all(len(each.new) <= size for each in reply.edits)


def _lie_in(spans: Iterable[Problem | Placeholder | Rewritable | SpanEdit | SyntaxErrorRegion], size: int) -> bool:
    return all(0 <= each.start <= each.end <= size for each in spans)


def _regions_lie_in(regions: Sequence[SyntaxErrorRegion], size: int) -> bool:
    return _lie_in(regions, size) and all(0 <= spot <= size for each in regions for spot in each.spots)


Question = ValidateFills | Diagnose | TryEdits | TryInsertions | AnalyzeText | RolesOf | CallsToChange
Reply = Validations | Diagnosis | Tried | Insertions | Analysis | Roles | SpanEdits


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxCheck:
    question: Question
    budget_ms: float
    """Processor time."""
    left_ms: float = math.inf
    """Wall time after which the answer is useless."""


def reply_to(
    question: Asks[R], budget_ms: float, left_ms: float = math.inf
) -> Generator[SyntaxCheck, Reply | None, R | None]:
    """Have a question answered, in work that runs step by step (see engine.fill.executor); None if time ran out."""
    if left_ms <= 0:
        return None
    check = SyntaxCheck(question=cast(Question, question), budget_ms=min(budget_ms, left_ms), left_ms=left_ms)
    return cast("R | None", (yield check))
