"""What stands elsewhere as a candidate: read by the model, checked as what it writes, and instead of a canvas where the
model is sure of it."""

import pytest
from msgspec.structs import replace

from engine.common.request import Filled, FillRequest, WorkspaceMatch
from engine.fill.executor import drive
from engine.fill.hypotheses import NO_ROW, Hypothesis
from engine.fill.pipeline import Parts, fill, infill
from engine.fill.workspace_matches import merged
from engine.models.oracle.model import Case, Oracle

PREFIX, ANSWER, SUFFIX = "def area(width):\n    return ", "width * 4", "\n\nprint(area(3))\n"
CASE = Case(text=f"{PREFIX}▮{ANSWER}▮{SUFFIX}")


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle("oracle", [CASE])


def asked(oracle: Oracle, *texts: str, prefix: str = PREFIX, **more: object) -> Filled:
    workspace_matches = tuple(
        WorkspaceMatch(text=text, origin=f"shapes.py:{line}") for line, text in enumerate(texts, start=1)
    )
    request = FillRequest(prefix=prefix, suffix=SUFFIX, language="python", workspace_matches=workspace_matches)
    return fill(oracle, replace(request, **more))


def test_a_text_that_the_model_would_write_costs_no_canvas(oracle: Oracle):
    filled = asked(oracle, "height", ANSWER)
    assert [(each.text, each.origin, each.syntax) for each in filled.candidates] == [(ANSWER, "shapes.py:2", "ok")]
    assert (filled.forwards, filled.steps) == (0, 0)
    assert filled.width == filled.candidates[0].tokens


def test_what_the_model_would_not_write_does_not_win(oracle: Oracle):
    filled = asked(oracle, "height", n=3)
    assert filled.forwards > 0
    assert (filled.candidates[0].text, filled.candidates[0].origin) == (ANSWER, "")
    assert ("height", "shapes.py:1") in [(each.text, each.origin) for each in filled.candidates]


def test_what_the_model_writes_too_says_where_it_stands(oracle: Oracle):
    workspace_matches = (WorkspaceMatch(text=ANSWER, origin="shapes.py:1", likeness=4.0),)
    request = FillRequest(prefix=PREFIX, suffix=SUFFIX, language="python", workspace_matches=workspace_matches)
    alone = fill(oracle, replace(request, workspace_matches=()))
    both = drive(oracle, infill(oracle, request, parts=Parts(sure=2.0)))
    assert both.forwards == alone.forwards > 0
    (first,) = both.candidates
    assert (first.text, first.origin, first.confidence) == (ANSWER, "shapes.py:1", alone.candidates[0].confidence)
    assert first.score > alone.candidates[0].score


def test_a_reading_is_of_the_tokens_that_it_stands_with():
    wide = Hypothesis(row=1, text="ab", ids=(1, 2), confidence=(0.5, 0.5))
    read = Hypothesis(row=NO_ROW, text="ab", ids=(3,), confidence=(0.9,), score=(-0.1, -0.2), origin="a.py:1")
    (both,) = merged([wide], [read])
    assert (both.row, both.ids, both.confidence, both.score, both.origin) == (1, (3,), (0.9,), (-0.1, -0.2), "a.py:1")


def test_what_stands_in_like_surroundings_is_as_sure_as_they_are_alike(oracle: Oracle):
    def sure(likeness: float) -> float:
        workspace_matches = (WorkspaceMatch(text="height", origin="shapes.py:1", likeness=likeness),)
        request = FillRequest(prefix=PREFIX, suffix=SUFFIX, language="python", workspace_matches=workspace_matches, n=3)
        candidates = drive(oracle, infill(oracle, request, parts=Parts(sure=2.0))).candidates
        return next(each.confidence for each in candidates if each.origin)

    # The model would not write it, so only what is alike around it speaks for it.
    read = sure(0)
    assert sure(20) == pytest.approx(max(read, 0.27), abs=0.01)
    assert sure(30) == pytest.approx(0.61, abs=0.01)


def test_what_is_most_likely_by_its_surroundings_costs_no_canvas(oracle: Oracle):
    workspace_matches = (WorkspaceMatch(text="height", origin="shapes.py:1", likeness=300.0),)
    filled = fill(
        oracle, FillRequest(prefix=PREFIX, suffix=SUFFIX, language="python", workspace_matches=workspace_matches)
    )
    assert (filled.forwards, filled.candidates[0].text) == (0, "height")


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("width *", {}),
        ("(width", {}),
        (f"width\n{SUFFIX.strip()}", {}),
        ("4 +\\\n  4", {"single_line": True}),
        ("", {}),
        ("width" + " * width" * 40, {"max_tokens": 32}),
        ("width * 4 * 4 * 4", {"width": 3}),
        ("height", {"task": "rewrite", "old": "width"}),
    ],
    ids=["unfinished", "open", "suffix again", "two lines", "nothing", "too long", "too wide", "no gap"],
)
def test_what_does_not_fit_is_not_offered(oracle: Oracle, text: str, more: dict[str, object]):
    assert not any(each.origin for each in asked(oracle, text, **{"n": 4, **more}).candidates)


def test_what_leaves_the_code_unfinished_comes_behind_what_finishes_it():
    before, after = "def f(a):\n    return max(a, b", "\n\n\ndef g(a):\n    return max(a, b)\n"
    oracle = Oracle("oracle", [Case(text=f"{before}▮)▮{after}")])
    open_still = WorkspaceMatch(text=", key=len", origin="x:1", likeness=500.0)
    request = FillRequest(prefix=before, suffix=after, language="python", n=5, workspace_matches=(open_still,))
    found = drive(oracle, infill(oracle, request, parts=Parts(sure=2.0)))
    assert [each.text for each in found.candidates] == [")", ", key=len"]


def test_line_ends_are_those_of_the_file(oracle: Oracle):
    prefix, answer, suffix = "a = 1\r\nb = 2\r\n", "c = 3\nd = 4", "\r\n"
    case = Case(text=f"{prefix}▮{answer}▮{suffix}".replace("\r\n", "\n"))
    request = FillRequest(prefix=prefix, suffix=suffix, workspace_matches=(WorkspaceMatch(text=answer, origin="x:1"),))
    assert fill(Oracle("oracle", [case]), request).candidates[0].text == answer.replace("\n", "\r\n")
