"""What does not parse is denoised again there, else cut, else not offered."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from engine.common.marked import gap_at_markers
from engine.common.request import Candidate, Draft, FillRequest, WorkspaceMatch
from engine.fill.executor import drive
from engine.fill.gap_opening import open_gap
from engine.fill.lengths.strategies import Fitted, discover
from engine.fill.pipeline import Parts, infill
from engine.fill.repair import repaired
from engine.models.base import Context, Rows
from engine.models.logits import Logits, dense
from engine.models.oracle.model import PAD, Case, Oracle, OracleContext, Slip
from engine.syntax.questions import SyntaxCheck

ADD = "def add(a, b):\n    return ▮max(a, b)▮\n"


def ask(case: Case | str, language: str = "python", **options) -> tuple[list[Candidate], list[Draft]]:
    case = Case(text=case) if isinstance(case, str) else case
    gap = gap_at_markers(case.text)
    request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, language=language, max_tokens=40, **options)
    drafts: list[Draft] = []
    filled = drive(Oracle("oracle", [case]), infill(Oracle("oracle", [case]), request), drafts.append)
    return list(filled.candidates), drafts


def check(case: Case | str, text: str | None, syntax: str, language: str = "python") -> None:
    candidates, _ = ask(case, language)
    assert [(each.text, each.syntax) for each in candidates[:1]] == ([(text, syntax)] if text is not None else [])


def test_what_parses_is_left_alone():
    check(ADD, "max(a, b)", "ok")


def test_a_broken_token_is_denoised_again():
    check(Case(text=ADD, slip=Slip(at=1, text=")")), "max(a, b)", "repaired")


@pytest.mark.parametrize(("mend_from", "syntax"), [(0.0, "repaired"), (0.9, "repaired"), (1.0, "cut")])
def test_what_is_too_unsure_to_be_shown_is_not_mended(mend_from: float, syntax: str):
    case = Case(text=ADD, slip=Slip(at=1, text=")"))
    gap = gap_at_markers(case.text)
    oracle = Oracle("oracle", [case])
    request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, language="python", max_tokens=40)
    sampling = replace(oracle.info.sampling, mend_from=mend_from)
    filled = drive(oracle, infill(oracle, request, parts=Parts(sampling=sampling)))
    assert [each.syntax for each in filled.candidates] == [syntax]


@pytest.mark.parametrize(("n", "mended"), [(1, False), (2, True)])
def test_nothing_is_mended_beside_enough_that_is_sound(n: int, mended: bool):
    case = Case(text=ADD)
    before, _, behind = case.parts
    oracle = Oracle("oracle", [case])
    gap = open_gap(oracle, FillRequest(prefix=before, suffix=behind, language="python", n=n))
    rows = [oracle.tokenize(text) for text in ("max(a, b)", "max)a, b)")]
    width = len(rows[0])
    canvas = gap.canvas(rows)
    canvas.pinned[:, :width] = canvas.known[:, :width] = False
    drafts: list[Draft] = []
    fitted = Fitted(canvas=canvas, widths=(width, width), slack=True, complete=True)
    found = drive(oracle, repaired(gap, fitted), drafts.append)
    assert next(each.syntax for each in found if each.text == "max(a, b)") == "ok"
    assert bool(drafts) == mended


def test_everything_but_the_problem_stays_pinned():
    _, drafts = ask(Case(text="x = [▮alpha, beta, gamma, delta, epsilon▮]\n", slip=Slip(at=3, text=")")))
    # By place: noise may spell any of the words.
    alpha, problem, delta = 0, 3, 9
    repairing = [draft.cells for draft in drafts if draft.cells[delta].state == "pinned"]
    assert repairing, "no step of the repair was seen"
    for cells in repairing:
        assert [cells[at].text for at in (alpha, delta)] == ["alpha", "delta"]
        assert cells[alpha].state == "pinned"
        assert cells[problem].state != "pinned"


def test_what_is_cut_ends_at_its_last_sound_line():
    """The model insists on what does not parse."""
    check("def f():\n    ▮a = 1\n    b = (▮\n\nc = 3\n", "a = 1", "cut")


def test_what_is_cut_behind_a_character_keeps_all_tokens_of_it():
    case = "def f():\n    ▮a = 1  # 😋\n    b = (▮\n\nc = 3\n"
    (candidate,), _ = ask(case)
    assert (candidate.text, candidate.syntax) == ("a = 1  # 😋", "cut")
    assert candidate.tokens == len(Oracle("oracle", [Case(text=case)]).tokenize(candidate.text))


def test_what_can_not_be_saved_is_not_offered():
    check("x = ▮)(▮\ny = 2\n", None, "")


@pytest.mark.parametrize("language", ["", "klingon"])
def test_an_unknown_language_is_unchecked(language: str):
    check("x = ▮)(▮\n", ")(", "unchecked", language)


def test_code_that_was_broken_elsewhere_blocks_nothing():
    check("def broken(:\n    pass\n\n\ndef g():\n    return ▮[1, 2]▮\n", "[1, 2]", "ok")


def test_unfinished_code_around_the_cursor_is_normal():
    check("def f(x):\n    if ▮x > 1:▮", "x > 1:", "ok")


def test_what_finishes_the_code_comes_before_likelier_text_that_does_not():
    candidates, _ = ask(Case(text="items = [▮a▮\nprint(items)\n", alternatives=("b]",)), n=2)
    assert [each.text for each in candidates] == ["b]", "a"]
    assert candidates[0].score < candidates[1].score


def test_brackets_that_the_editor_closed_are_not_doubled():
    case = Case(text="print(▮total)▮)\n")
    candidates, _ = ask(case)
    assert [each.text for each in candidates] == ["total"]


def test_a_fill_ends_where_its_string_ends():
    check('name = "▮world" + end▮"\n', "world", "cut")


@pytest.mark.parametrize(
    ("language", "text", "answer"),
    [
        ("javascript", "function f(a) {\n  return ▮a.map((x) => x + 1)▮;\n}\n", "a.map((x) => x + 1)"),
        ("rust", "fn main() {\n    let x = ▮vec![1, 2]▮;\n}\n", "vec![1, 2]"),
        ("json", '{"a": ▮[1, 2]▮}\n', "[1, 2]"),
        ("go", "package main\n\nfunc f() int {\n\treturn ▮g(1)▮\n}\n", "g(1)"),
    ],
)
def test_other_languages(language: str, text: str, answer: str):
    check(text, answer, "ok", language)
    slipped = Case(text=text, slip=Slip(at=1, text="}"))
    assert {each.syntax for each in ask(slipped, language)[0]} <= {"ok", "repaired", "cut"}


def test_crlf_files_are_judged_as_they_are():
    candidates, _ = ask("if x:\r\n    ▮y = 1\r\n    z = 2▮\r\n")
    assert [(each.text, each.syntax) for each in candidates] == [("y = 1\r\n    z = 2", "ok")]


class Stammering(Oracle):
    """Says its answer once, then half a character and nothing else."""

    asked = 0

    def step(self, rows: Rows) -> Logits:
        logits = super().step(rows).whole()
        self.asked += 1
        if self.asked > 1:
            logits = torch.zeros_like(logits)
            logits[:, PAD] = 20.0
            logits[0, PAD], logits[0, "é".encode()[0]] = 0.0, 20.0
        return dense(logits)


def test_what_was_cut_short_into_half_a_character_is_not_mended_again():
    case = Case(text="x = [▮alpha, beta ) gamma, delta▮]\n")
    model, gap = Stammering("oracle", [case]), gap_at_markers(case.text)
    drive(model, infill(model, FillRequest(prefix=gap.prefix, suffix=gap.suffix, language="python", max_tokens=40)))
    assert model.asked > 1, "nothing was mended"


@pytest.mark.parametrize(("deadline_ms", "step_s", "left_ms"), [(1020.0, 0.1, 50.0), (102.0, 0.01, 10.0)])
def test_what_a_deadline_stops_is_checked_before_it(deadline_ms: float, step_s: float, left_ms: float):
    case = Case(text="x = ▮a + b + c + d + e + f + g + h + i + j + k + l + m▮\n", reveal=1)
    gap, model, now = gap_at_markers(case.text), Oracle("oracle", [case]), 0.0
    request = FillRequest(
        prefix=gap.prefix, suffix=gap.suffix, language="python", max_tokens=40, deadline_ms=deadline_ms
    )
    filling = infill(model, request, clock=lambda: now)
    wanted = next(filling)
    while not isinstance(wanted, SyntaxCheck):
        now += step_s
        wanted = filling.send(model.step(wanted.rows))
    assert wanted.left_ms == wanted.budget_ms == pytest.approx(deadline_ms - now * 1000)
    assert wanted.left_ms >= left_ms


class Slow(Oracle):
    """Every pass takes `pass_s` of its own clock; a reading is one, too."""

    now = 0.0
    pass_s = 1.0

    def clock(self) -> float:
        return self.now

    def encode(self, ids: Sequence[int]) -> OracleContext:
        self.now += self.pass_s
        return super().encode(ids)

    def step(self, rows: Rows) -> Logits:
        self.now += self.pass_s
        return super().step(rows)

    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        self.now += self.pass_s
        return super().score(context, gaps, suffix)


@pytest.mark.parametrize("deadline_s", [2.5, 3.5, 4.2, 5.5, 7.1, 7.9])
@pytest.mark.parametrize("language", ["python", ""])
def test_no_pass_begins_that_would_end_behind_the_deadline(deadline_s: float, language: str):
    case = Case(text="x = ▮a + b + c + d + e + f + g + h + i + j + k + l + m▮\n", reveal=1)
    model, gap = Slow("oracle", [case]), gap_at_markers(case.text)
    request = FillRequest(
        prefix=gap.prefix, suffix=gap.suffix, language=language, max_tokens=40, deadline_ms=deadline_s * 1000
    )
    filled = drive(model, infill(model, request, clock=model.clock))
    assert model.now <= deadline_s
    assert filled.steps >= 1
    # All is used that there is time for: less than another pass was left.
    assert model.now > deadline_s - 1.1


class SlowReader(Slow):
    """Reads for four times as long as a pass takes."""

    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        self.now += 3 * self.pass_s
        return super().score(context, gaps, suffix)


def test_what_was_done_before_the_first_step_makes_no_step_longer():
    case = Case(text="x = ▮a + b + c + d + e + f + g + h + i + j + k + l + m▮\n", reveal=1)
    model, gap = SlowReader("oracle", [case]), gap_at_markers(case.text)
    elsewhere = (WorkspaceMatch(text="another(one)", origin="a.py:1"),)
    request = FillRequest(
        prefix=gap.prefix,
        suffix=gap.suffix,
        language="python",
        max_tokens=40,
        deadline_ms=9500,
        workspace_matches=elsewhere,
    )
    assert drive(model, infill(model, request, clock=model.clock)).steps == 4


@pytest.mark.parametrize("deadline_s", [2.5, 4.5, 7.1])
def test_a_gap_of_unknown_width_is_answered_in_time_with_what_stands_there(deadline_s: float):
    """The canvas that looks for the suffix is the best one while there is no time for another."""
    case = Case(text="x = ▮a + b + c + d + e + f + g + h + i + j + k + l + m▮\ny = x\n", reveal=1)
    model, gap = Slow("oracle", [case]), gap_at_markers(case.text)
    request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, max_tokens=40, deadline_ms=deadline_s * 1000)
    filled = drive(model, infill(model, request, clock=model.clock, parts=Parts(strategy=discover)))
    assert model.now <= deadline_s
    assert filled.candidates
