"""Checks of a request's document with a fill in it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from engine.common.request import FillRequest, Syntax
from engine.fill.deadline import Deadline
from engine.fill.executor import Work
from engine.fill.hypotheses import Hypothesis
from engine.syntax.languages import language_of
from engine.syntax.overlap import closed_after, without_end
from engine.syntax.questions import Reply, SyntaxCheck, ValidatedFill, ValidateFills, reply_to

CHECK_MS = 500.0
"""Time to check fills; those not checked by then are offered unchecked."""
EDIT_CHECK_MS = 5000.0
"""Time to check edits; those not checked by then are not offered."""

_SPARE_MS, _SPARE_SHARE = 50.0, 0.1
"""Time of a deadline that is kept for checks: most milliseconds, most share. A first check takes some milliseconds."""


def spare_ms(request: FillRequest) -> float:
    """The part of a request's deadline that is kept for checks after the last step."""
    if request.deadline_ms is None or language_of(request.language) is None:
        return 0.0
    return min(_SPARE_MS, _SPARE_SHARE * request.deadline_ms)


def validated_fills(
    request: FillRequest, fills: Sequence[str], deadline: Deadline, *, cut: bool = False
) -> Generator[SyntaxCheck, Reply | None, Sequence[ValidatedFill | None]]:
    """The parts of these texts that may be offered; the texts have line feeds. Edits are validated whole."""
    language = language_of(request.language)
    if language is None or not fills:
        return [_belonging(request, text) for text in fills]
    whole = request.task != "fill"
    before, old = request.prefix, request.old
    question = ValidateFills(
        text=before + old + request.suffix,
        start=len(before),
        end=len(before) + len(old),
        language=language,
        fills=tuple(fills),
        whole=whole,
        cut=cut,
        may_swallow=request.may_swallow,
    )
    reply = yield from reply_to(question, EDIT_CHECK_MS if whole else CHECK_MS, deadline.left_ms())
    return reply.fills if reply else [ValidatedFill(text=text, verdict=None) for text in fills]


def valid_fills(request: FillRequest, fills: Sequence[str], deadline: Deadline) -> Work[dict[str, ValidatedFill]]:
    """The texts that add no problem as they are, for `checked`."""
    validated = yield from validated_fills(request, fills, deadline)
    return {
        text: found
        for text, found in zip(fills, validated, strict=True)
        if found is not None and found.text == text and not (found.verdict and found.verdict.problems)
    }


def _belonging(request: FillRequest, fill: str) -> ValidatedFill:
    """The part of a fill that belongs in the gap, in a language that has no grammar here."""
    before, after = request.prefix, request.suffix
    text = without_end(before, fill, after) if request.task == "fill" else fill
    closed = closed_after(before, fill, after) if text == fill and request.may_swallow else 0
    return ValidatedFill(text=text, verdict=None, swallowed=closed)


def checked(said: Hypothesis, found: ValidatedFill, syntax: Syntax = "ok") -> Hypothesis:
    """A hypothesis with the result of its check."""
    whole = found.verdict is not None and found.verdict.whole
    syntax = syntax if found.verdict else "unchecked"
    return replace(said, syntax=syntax, whole=whole, swallowed=found.swallowed)
