"""Draft, check, accept: what a causal model fills."""

import math
from collections.abc import Sequence
from dataclasses import replace as dataclass_replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.common.request import Draft, Filled, FillRequest, WorkspaceMatch
from engine.fill.draft_sources import DraftSources
from engine.fill.executor import Work, drive
from engine.fill.gap import Gap
from engine.fill.greedy import Said
from engine.fill.missing_openers import with_opener
from engine.fill.pipeline import fill, infill
from engine.models.base import CausalHead
from engine.models.causal.model import Causal
from engine.syntax.questions import ValidatedFill
from tests.engine.coder import open_model, write_coder
from tests.engine.scripted import Scripted

BOX = FillRequest(
    prefix="class Box:\n    def __init__(self, depth):\n        self.depth = depth\n        self.value =",
    suffix="\n\n    def area(self):\n        return self.depth\n",
    language="python",
)
AFTER = "\n\n    def area(self):\n"


def head_of(model: Scripted, request: FillRequest) -> str:
    return model.prompt(request).head


def scripted(request: FillRequest, says: str, **more: object) -> Scripted:
    """It says the end of the prefix, which is taken back, too."""
    head = head_of(Scripted(""), request)
    if "instead" in more:
        at, other = more["instead"]  # pyright: ignore[reportGeneralTypeIssues]
        more["instead"] = (at + len(head), other)
    return Scripted(head + says, **more)  # pyright: ignore[reportArgumentType]


def answer(model: object, request: FillRequest) -> Filled:
    return fill(model, request)  # pyright: ignore[reportArgumentType]


def text(filled: Filled) -> str:
    return filled.candidates[0].text if filled.candidates else ""


@pytest.mark.parametrize(
    "says", [" depth", f" depth{AFTER}", " depth\n\n    def area(se", " depth\n        self.other = 1"]
)
def test_an_answer_ends_where_the_model_does_or_where_what_follows_the_cursor_begins(says: str):
    assert text(answer(scripted(BOX, says), BOX)) == " depth"


VALUE = FillRequest(prefix="import a\nvalue =", suffix="\n\ndef area(depth):\n    return depth\n", language="python")


def test_an_answer_ends_where_what_follows_the_cursor_nearly_comes():
    says, end = " 1\n\n@wraps\n@checks\n@counts\n", len(" 1\n\n")
    near = answer(scripted(VALUE, says, instead=(end, "def area(depth):\n"), sure=0.9), VALUE)
    far = answer(scripted(VALUE, says, instead=(end, "class"), sure=0.9), VALUE)
    assert text(near) == text(far) == " 1"
    assert near.forwards < far.forwards
    assert near.candidates[0].confidence == far.candidates[0].confidence


def test_a_line_that_only_closes_ends_no_answer_that_goes_on():
    request = FillRequest(prefix="f(\na,\n", suffix=")\n")
    filled = answer(scripted(request, "b,\nc,\n)\n", instead=(len("b,\n"), ")\n"), sure=0.9), request)
    assert text(filled).split() == ["b,", "c,"]


@pytest.mark.parametrize(("sure", "wanted"), [(0.8, "b = 1\nc = 2"), (0.6, "b = 1")])
def test_an_answer_goes_on_after_its_first_statement_where_that_is_likely_enough(
    sure: float, wanted: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("engine.fill.causal_fill.UNLIKELY", math.log(0.7))
    request = replace(VALUE, prefix="import a\n")
    model = scripted(request, "b = 1\nc = 2\n\ndef area(depth):\n", sure=sure)
    model.instead = (len(head_of(model, request)) + len("b = 1\n"), "@wraps")
    assert text(answer(model, request)) == wanted


def test_where_nothing_seems_to_be_missing_the_likeliest_text_is_offered_as_unlikely():
    filled = answer(scripted(VALUE, "", instead=(0, " 1\n\ndef area(depth):\n"), sure=0.9), VALUE)
    assert text(filled) == " 1"
    assert filled.candidates[0].confidence == pytest.approx(0.1, abs=0.01)


def test_the_indentation_of_lines_beside_a_gap_is_a_draft(monkeypatch: pytest.MonkeyPatch):
    request = FillRequest(prefix="class Box:\n    a = 1\n", suffix="    c = 3\n", language="python", single_line=True)
    drafted = answer(scripted(request, "    b = 2\n"), request)
    monkeypatch.setattr("engine.fill.causal_fill._beginnings", lambda *given: [])  # pyright: ignore
    plain = answer(scripted(request, "    b = 2\n"), request)
    assert text(drafted).strip() == text(plain).strip() == "b = 2"
    assert drafted.forwards < plain.forwards


def test_drafts_save_passes_and_change_nothing():
    model, alone = scripted(BOX, f" self.depth + self.depth{AFTER}"), scripted(BOX, f" self.depth + self.depth{AFTER}")
    filled = answer(model, BOX)
    assert text(filled) == " self.depth + self.depth"
    tokens = len(alone.tokenize(f" self.depth + self.depth{AFTER}"))
    assert filled.forwards < tokens / 2
    assert filled.forwards == len(model.trees)


@pytest.mark.parametrize("guess", [" self.depth + 1", "nothing of it", ""])
def test_the_rest_of_an_earlier_suggestion_is_a_draft(guess: str):
    said = " self.depth + 1"
    filled = answer(scripted(BOX, said), replace(BOX, guess=guess))
    assert text(filled) == said
    assert (filled.forwards == 1) == (guess == said)


def test_one_line_ends_at_its_end():
    request = replace(BOX, single_line=True)
    filled = answer(scripted(BOX, " (\n            depth)"), replace(request, language=""))
    assert text(filled) == " ("
    assert "\n" not in text(answer(scripted(BOX, " depth\n"), request))


def test_what_does_not_parse_is_cut():
    filled = answer(scripted(BOX, " depth\n        else x y z", sure=0.999), replace(BOX, suffix=""))
    assert text(filled) == " depth"


def test_where_the_grammar_refuses_what_is_said_another_way_is_tried_from_the_problem_on():
    # The likelier way to go on otherwise is after the problem, where it helps nobody.
    model = scripted(BOX, " )depth + 1", sure=0.9)
    head = len(head_of(model, BOX))
    model.instead = (head + 1, f"depth + 2{AFTER}")
    filled = answer(model, replace(BOX, single_line=True))
    assert [(each.text, each.syntax) for each in filled.candidates] == [(" depth + 2", "repaired")]


OPENED = FillRequest(prefix="import a\n", suffix="\n    b,\n    c,\n)\n", language="python", single_line=True)
IMPORT = "from x import b, c\n"


def offered(model: Scripted, request: FillRequest) -> list[tuple[str, str]]:
    return [(each.text, each.syntax) for each in answer(model, request).candidates]


def test_an_answer_opens_the_bracket_that_what_follows_closes_where_the_model_nearly_does():
    model = scripted(OPENED, IMPORT, instead=(len("from x import "), "(b, c)\n"), sure=0.9)
    filled = answer(model, OPENED)
    assert [(each.text, each.syntax) for each in filled.candidates] == [("from x import (", "repaired")]
    assert filled.forwards <= 1 + len(model.tokenize(model.says))  # only said once


def test_another_answer_is_better_than_a_bracket_that_the_model_hardly_opens():
    model = scripted(OPENED, IMPORT, instead=(0, "call(\n"), sure=0.6)
    assert offered(model, OPENED) == [("call(", "repaired")]
    (alone,) = answer(scripted(OPENED, "value = 1\n", sure=0.999), OPENED).candidates
    assert alone.text.endswith("(")
    assert alone.confidence < 0.01


def test_only_a_refused_answer_is_opened(monkeypatch: pytest.MonkeyPatch):
    seen = list[str]()

    def noted(gap: Gap, head: CausalHead, refused: Sequence[int], openers: str) -> list[Said]:
        seen.append(gap.text(refused))
        return with_opener(gap, head, refused, openers)

    monkeypatch.setattr("engine.fill.causal_fill.with_opener", noted)
    # It first says what follows the cursor, as if nothing were missing.
    request = replace(OPENED, suffix="b,\n    c,\n)\n")
    answer(scripted(request, "b,\n", instead=(0, IMPORT), sure=0.6), request)
    assert seen == ["from x import b, c"]


def test_what_nobody_checked_is_not_offered_as_opened(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.fill.causal_fill.valid_fills", unchecked)
    model = scripted(OPENED, IMPORT, instead=(len("from x import "), "(b, c)\n"), sure=0.9)
    assert "from x import (" not in [text for text, _ in offered(model, OPENED)]


def unchecked(request: FillRequest, fills: list[str], deadline: object) -> Work[dict[str, ValidatedFill]]:
    yield from ()
    return {text: ValidatedFill(text=text, verdict=None) for text in fills}


def test_where_the_model_only_says_what_follows_the_cursor_in_its_line_another_way_is_tried():
    request = FillRequest(prefix="import a\n", suffix="import c\n", language="python", single_line=True)
    model = scripted(request, "import c\n", instead=(7, "b\n"), sure=0.9)
    assert [each.text for each in answer(model, request).candidates] == ["import b\n"]


def test_what_the_grammar_refuses_any_way_is_cut_after_a_few():
    model = scripted(BOX, " depth\n        else x y z", sure=0.999)
    filled = answer(model, replace(BOX, suffix=""))
    assert [(each.text, each.syntax) for each in filled.candidates] == [(" depth", "cut")]
    once = len(model.tokenize(model.says)) // 3
    assert once <= filled.forwards <= 4 * once


def test_what_follows_the_cursor_gets_a_line_of_its_own_where_the_model_says_so_and_the_grammar():
    request = FillRequest(prefix="def f(l):\n    e", suffix="    o = l[1::2]\n    return e, o\n", language="python")
    filled = answer(scripted(request, " = l[::2]\n    o = l"), request)
    assert [(each.text, each.syntax) for each in filled.candidates] == [(" = l[::2]\n", "ok")]


def test_other_ways_branch_where_the_model_is_least_sure():
    model = scripted(BOX, f" depth + 1{AFTER}", instead=(6, f" + 2{AFTER}"), sure=0.6)
    model.instead = (len(head_of(model, BOX)) + len(" depth + "), f"2{AFTER}")
    filled = answer(model, replace(BOX, n=2))
    assert [each.text for each in filled.candidates] == [" depth + 1", " depth + 2"]
    assert filled.candidates[0].confidence > filled.candidates[1].confidence


def test_confidence_is_how_likely_all_of_the_text_is_and_that_it_ends():
    model = scripted(BOX, " depth", sure=0.7)
    model.instead = (len(head_of(model, BOX)), " value")
    (candidate,) = answer(model, BOX).candidates
    # " depth" is told from " value" by its second token alone.
    assert candidate.confidence == pytest.approx(0.7, abs=0.01)
    assert candidate.score == pytest.approx(-0.357, abs=0.02)


def test_a_workspace_match_is_a_candidate_and_a_draft():
    said = " self.depth + 1"
    matches = (WorkspaceMatch(text=said, origin="a.py:1", likeness=1), WorkspaceMatch(text=" depth", origin="a.py:2"))
    filled = answer(scripted(BOX, f"{said}{AFTER}"), replace(BOX, workspace_matches=matches))
    assert (text(filled), filled.candidates[0].origin) == (said, "a.py:1")
    assert filled.forwards <= 2


@pytest.mark.parametrize(("match_nats", "wanted"), [(1.8, " depth"), (0.1, " self.depth + 1")])
def test_a_good_model_is_not_outvoted_by_likeness(match_nats: float, wanted: str):
    model = scripted(BOX, f" self.depth + 1{AFTER}", instead=(1, f"depth{AFTER}"), sure=0.999)
    model.info = dataclass_replace(model.info, match_nats=match_nats)
    matches = (WorkspaceMatch(text=" depth", origin="a.py:2", likeness=20),)
    assert text(answer(model, replace(BOX, workspace_matches=matches))) == wanted


def test_at_the_deadline_the_answer_is_what_is_said_by_then():
    now = [0.0]
    model = scripted(BOX, " 11111111 + 22222222")
    model_check = model.check

    def check(*given: object) -> object:
        now[0] += 0.1
        return model_check(*given)  # pyright: ignore[reportArgumentType]

    model.check = check  # pyright: ignore[reportAttributeAccessIssue]
    filled = drive(model, infill(model, replace(BOX, deadline_ms=450), clock=lambda: now[0]))  # pyright: ignore[reportArgumentType]
    assert 1 <= filled.forwards <= 4
    assert text(filled)
    assert " 11111111 + 22222222".startswith(text(filled))


def test_a_fill_can_be_held_up_and_cancelled_between_passes_and_shows_drafts():
    model = scripted(BOX, f" 123456789{AFTER}")
    filling = infill(model, BOX)  # pyright: ignore[reportArgumentType]
    seen = [next(filling) for _ in range(4)]
    assert len(model.trees) == 4
    assert all(isinstance(each, Draft) for each in seen)
    texts = [each.text for each in seen if isinstance(each, Draft)]
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    filling.close()
    assert len(model.trees) == 4


def test_what_a_draft_calls_settled_is_how_the_answer_begins():
    model = scripted(BOX, f" depth + 1{AFTER}")
    drafts: list[Draft] = []
    filled = drive(model, infill(model, BOX), drafts.append)  # pyright: ignore[reportArgumentType]
    assert any(each.settled for each in drafts)
    assert all(text(filled).startswith(each.text[: each.settled]) for each in drafts)
    assert all(each.settled <= len(each.text) for each in drafts)


def test_a_draft_shows_what_comes_after_the_cursor():
    """The end of the prefix is said again, and stands before the cursor already."""
    assert head_of(Scripted(""), BOX) == " ="
    drafts: list[Draft] = []
    drive(model := scripted(BOX, f" depth + 1{AFTER}"), infill(model, BOX), drafts.append)  # pyright: ignore
    said = ["".join(cell.text for cell in each.cells if cell.state == "accepted") for each in drafts]
    assert said[-1].startswith(" depth + 1")
    assert all(whole.startswith(each.text) for whole, each in zip(said, drafts, strict=True))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Causal:
    return open_model(write_coder(tmp_path_factory.mktemp("coder") / "coder.gguf"))


class NoDrafts(DraftSources):
    def after(self, said):  # pyright: ignore
        return lambda path: {}


def test_greedy_with_drafts_is_greedy_without(tiny: Causal, monkeypatch: pytest.MonkeyPatch):
    requests = [
        FillRequest(prefix=f"def f(x):\n    return {seed}", suffix="\n", language="", max_tokens=24, n=1 + seed % 2)
        for seed in range(12)
    ]
    drafted = [answer(tiny, request) for request in requests]
    monkeypatch.setattr("engine.fill.causal_fill.DraftSources", NoDrafts)
    tiny.forget()
    plain = [answer(tiny, request) for request in requests]
    for one, other in zip(drafted, plain, strict=True):
        assert [each.text for each in one.candidates] == [each.text for each in other.candidates]
        assert [each.confidence for each in one.candidates] == pytest.approx(
            [each.confidence for each in other.candidates], rel=1e-3
        )
    assert sum(each.forwards for each in drafted) < sum(each.forwards for each in plain)


@settings(max_examples=60, deadline=None)
@given(st.text("ab1+ \n", max_size=12), st.text("ab1+ \n", max_size=12))
def test_whatever_is_drafted_the_answer_is_the_models(tiny: Causal, guess: str, match: str):
    request = FillRequest(prefix="x =", suffix="\ny = x\n", max_tokens=12)
    drafted = answer(tiny, replace(request, guess=guess))
    assert [each.text for each in drafted.candidates] == [each.text for each in answer(tiny, request).candidates]
