"""Each part of a fill can be left out, and is missed."""

import math

from engine.common.marked import gap_at_markers
from engine.common.request import Candidate, FillRequest
from engine.fill.executor import drive
from engine.fill.pipeline import Parts, infill
from engine.models.oracle.model import Case, Oracle, Slip

SLIPPED = Case(text="def add(a, b):\n    return ▮max(a, b)▮\n", slip=Slip(at=1, text=")"))


def ask(case: Case, parts: Parts) -> tuple[Candidate, ...]:
    gap = gap_at_markers(case.text)
    request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, language="python", max_tokens=40)
    return drive(Oracle("oracle", [case]), infill(Oracle("oracle", [case]), request, parts=parts)).candidates


def test_without_repair_what_does_not_parse_is_offered_as_it_is():
    assert [(each.text, each.syntax) for each in ask(SLIPPED, Parts(repair=False))] == [("max)a, b)", "unchecked")]
    assert [each.syntax for each in ask(SLIPPED, Parts())] == ["repaired"]


def test_without_ranking_the_score_is_the_confidence_of_the_canvas():
    case = Case(text=SLIPPED.text, confidence=0.999)
    (unread,) = ask(case, Parts(ranking=False))
    assert math.isclose(unread.score, unread.tokens * math.log(unread.confidence))
    (read,) = ask(case, Parts())
    assert (read.text, read.confidence) == (unread.text, unread.confidence)
    assert not math.isclose(read.score, unread.score)
