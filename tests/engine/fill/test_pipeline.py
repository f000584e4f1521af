"""From request to answer, on the tiny released-shape model: what holds whatever the model says."""

import math
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from statistics import fmean

import pytest
from msgspec import structs

from engine.common.errors import BadInput
from engine.common.request import Draft, FillRequest
from engine.fill.executor import drive
from engine.fill.loading import load
from engine.fill.pipeline import fill, infill
from engine.fill.ranking import ENDS
from engine.models.oracle.model import Case, Oracle
from tests.engine.tiny import tiny_model

PREFIX, SUFFIX = "def area(width):\n    return wid", "\n\nprint(area(3))\n"


@pytest.fixture(scope="module")
def model(released: Path):
    model = tiny_model(released)
    # A random model would break most of its characters in two.
    pieces = [
        token for token in range(model.info.noise.vocab_size) if max(model.vocabulary.bytes[token], default=0) > 127
    ]
    model.info = replace(model.info, forbidden_ids=(*model.info.forbidden_ids, *pieces))
    return model


def ask(prefix: str = PREFIX, suffix: str = SUFFIX, **options) -> FillRequest:
    return FillRequest(prefix=prefix, suffix=suffix, language="python", **{"max_tokens": 12, **options})


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("", ""),
        ("", SUFFIX),
        (PREFIX, ""),
        ("x = '😋", "😋'\n"),
        ("a\r\nb = ", "\r\n"),
        ("\tif x:\n\t\t", "\n"),
        ("x = 12", "34\n"),
        ("ab" * 40_000, "c\n" * 40_000),
        ("x = 1\n" * 500_000, "y = 2\n" * 400_000),
    ],
    ids=["empty", "no prefix", "no suffix", "astral", "CRLF", "tabs", "inside a number", "one long line", "5 MB"],
)
def test_every_kind_of_text_is_answered(model, prefix: str, suffix: str):
    filled = fill(model, ask(prefix, suffix, width=6))
    assert filled.width == 6
    assert filled.steps == filled.forwards >= 1


def test_a_seed_repeats_its_answer_and_another_gives_another(model):
    answers = [fill(model, ask(width=8, n=3, seed=seed)).candidates for seed in (1, 1, 2)]
    assert answers[0] == answers[1]
    assert answers[0] != answers[2]


def test_candidates_are_distinct_and_best_first(model):
    candidates = fill(model, ask(width=5, n=6)).candidates
    assert len({candidate.text for candidate in candidates}) == len(candidates) > 1
    scores = [candidate.score for candidate in candidates]
    assert scores == sorted(scores, reverse=True)
    for candidate in candidates:
        assert 0 < candidate.confidence <= 1
        assert len(candidate.token_confidence) == candidate.tokens


@pytest.mark.parametrize("width", [1, 7, 33, 70])
def test_a_fixed_width_is_kept_over_canvases(model, width: int):
    assert fill(model, ask(width=width, max_tokens=100)).width == width


def test_the_cursor_may_stand_inside_a_token(model):
    """The token before the cursor is taken back; what it said must come again, and is not part of the answer."""
    head = model.prompt(ask()).head
    assert head
    assert PREFIX.endswith(head)
    drafts: list[Draft] = []
    drive(model, infill(model, ask(width=6, n=4)), drafts.append)
    # Of six tokens, one says it.
    shown = [cell.text for cell in drafts[-1].cells if cell.state != "pinned"]
    assert len(shown) == 6 - len(model.tokenize(head))


@pytest.mark.parametrize("single_line", [True, False])
def test_a_single_line_holds_no_line_break(single_line: bool):
    bundled = load("bundled", "cpu").model
    prefix = "class Box:\n    def __init__(self, width, height, depth):\n        self.width = width\n        "
    request = FillRequest(prefix=prefix, suffix="\n", language="python", width=16, n=4, single_line=single_line)
    texts = [each.text for each in fill(bundled, request).candidates]
    assert texts
    assert any("\n" in text for text in texts) is not single_line


def test_an_answer_takes_the_files_line_ends(model):
    # The model babbles: some of its answers have line breaks, where no language cuts them.
    asked = structs.replace(ask("a = [\r\n  1,\r\n", "\r\n]\r\n", width=10, n=4), language="")
    for seed in range(100):
        filled = fill(model, structs.replace(asked, seed=seed))
        texts = [candidate.text for candidate in filled.candidates]
        assert not any("\n" in text.replace("\r\n", "") for text in texts)
        if any("\r\n" in text for text in texts):
            return
    pytest.fail("no answer had a line break")


def test_a_deadline_gives_the_best_so_far(model):
    ticks = count()
    request = ask(width=8, deadline_ms=5_000)
    filled = drive(model, infill(model, request, clock=lambda: float(next(ticks))))
    assert 1 <= filled.steps < 5


def test_a_deadline_holds_for_a_gap_wider_than_a_canvas(model):
    ticks = count(step=100)
    asked = ask(width=4096, max_tokens=4096, deadline_ms=1)
    filled = drive(model, infill(model, asked, clock=lambda: float(next(ticks))))
    assert filled.width < 4096
    assert filled.steps == 1


def test_the_first_step_is_done_even_when_it_is_late(model):
    ticks = count(step=100)
    filled = drive(model, infill(model, ask(width=8, deadline_ms=1), clock=lambda: float(next(ticks))))
    assert filled.steps == 1


def test_drafts_show_every_step(model):
    drafts: list[Draft] = []
    filled = drive(model, infill(model, ask(width=6)), drafts.append)
    assert len(drafts) == filled.steps
    states = {cell.state for draft in drafts for cell in draft.cells}
    assert states == {"noise", "accepted", "pinned"}
    for draft in drafts:
        in_gap = [*takewhile(lambda cell: cell.state != "pinned", draft.cells)]
        assert len(in_gap) in (5, 6)  # the first says what stands before the cursor, once it is known
        after = draft.cells[len(in_gap) :]
        assert {cell.state for cell in after} == {"pinned"}
        assert SUFFIX.startswith("".join(cell.text for cell in after))


def test_closing_a_fill_is_a_cancel(model):
    filling = infill(model, ask())
    next(filling)
    filling.close()
    with pytest.raises(StopIteration):
        next(filling)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "at least one"),
        ({"max_tokens": 0}, "at least one"),
        ({"width": 0}, "at least one"),
        ({"strength": 0.0}, "above 0"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(model, options, message):
    with pytest.raises(BadInput, match=message):
        fill(model, ask(**options))


def test_the_width_told_is_that_of_the_first_candidate():
    model = Oracle("oracle", [Case(text="x = ▮max(a, b)▮\n")])
    model.info = replace(model.info, widths=(2, 40))
    found = fill(model, FillRequest(prefix="x = ", suffix="\n", language="python"))
    assert (found.candidates[0].text, found.width) == ("max(a, b)", 40)


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("ruby", "def f(x)\n  if x\n    y\n  ▮end▮\nend\n"),
        ("html", "<div>\n  <div>\n    a\n  ▮</div>▮\n</div>\n"),
        ("bash", "for a in b; do\n  for c in d; do\n    echo $c\n  ▮done▮\ndone\n"),
        ("javascript", "f(() => {\n  g(() => {\n    h();\n  ▮});▮\n});\n"),
        ("javascript", "describe('a', () => {\n  it('b', () => {\n    ▮expect(f()).toBe(1);\n  });▮\n});\n"),
    ],
)
def test_a_line_that_closes_a_block_may_come_before_its_like(language: str, marked: str):
    prefix, fitting, suffix = marked.split("▮")
    found = fill(Oracle("oracle", [Case(text=marked)]), FillRequest(prefix=prefix, suffix=suffix, language=language))
    assert [each.text for each in found.candidates] == [fitting]


@pytest.mark.parametrize("language", ["elixir", ""])
def test_where_nothing_checks_a_closing_line_is_not_said_twice(language: str):
    oracle = Oracle("oracle", [Case(text="def f do\n  ▮b\nend▮\nend\n")])
    found = fill(oracle, FillRequest(prefix="def f do\n  ", suffix="\nend\n", language=language))
    assert not any(each.text.endswith("end") for each in found.candidates)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_tokens_end_where_their_text_does(line_end: str):
    answer = "a + '😋é'\n    b"
    oracle = Oracle("oracle", [Case(text=f"x = ▮{answer}▮{line_end}")])
    filled = fill(oracle, FillRequest(prefix="x = ", suffix=line_end))
    (candidate,) = filled.candidates
    starts = (0, *candidate.token_ends[:-1])
    pieces = [candidate.text[start:end] for start, end in zip(starts, candidate.token_ends, strict=True)]
    assert "".join(pieces) == candidate.text == answer.replace("\n", line_end)
    assert len(pieces) == candidate.tokens == len(candidate.token_confidence)
    assert line_end in pieces
    assert filled.context_tokens == len(oracle.prompt(FillRequest(prefix="x = ", suffix="\n")).context)


def test_what_is_settled_in_a_draft_grows_from_the_left_to_the_answer():
    answer = "'é😋é' + abc"
    oracle = Oracle("oracle", [Case(text=f"x = ▮{answer}▮\n", reveal=1)])
    drafts: list[Draft] = []
    drive(oracle, infill(oracle, FillRequest(prefix="x = ", suffix="\n")), drafts.append)
    heads = [draft.text[: draft.settled] for draft in drafts]
    assert all(answer.startswith(head) for head in heads)
    assert len({len(head) for head in heads}) > 5
    assert max(heads, key=len) == answer
    assert any(draft.settled < len(draft.text) for draft in drafts)


@pytest.mark.parametrize("task", ["fill", "rewrite"])
def test_the_replacement_character_is_one_like_others(task: str):
    text = "x = '\N{REPLACEMENT CHARACTER}'  # broken"
    oracle = Oracle("oracle", [Case(text=f"▮{text}▮\n")])
    request = FillRequest(prefix="", suffix="\n", task=task, old=text.replace("x", "y") if task == "rewrite" else "")
    assert [each.text for each in fill(oracle, request).candidates] == [text]


def test_what_rows_do_not_agree_on_is_not_settled():
    oracle = Oracle("oracle", [Case(text="x = ▮abc + def▮\n", alternatives=("abc - def",))])
    drafts: list[Draft] = []
    drive(oracle, infill(oracle, FillRequest(prefix="x = ", suffix="\n", n=2)), drafts.append)
    assert drafts
    assert {draft.text[: draft.settled] for draft in drafts} <= {"", "abc "}


def test_a_model_that_knows_where_gaps_end_says_how_likely_all_of_it_is(model, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(model, "info", replace(model.info, end_id=5))
    request = ask(width=4, n=2)
    prompt = model.prompt(request)
    for candidate in fill(model, request).candidates:
        ids = model.tokenize(prompt.head + candidate.text)
        *text, end = model.score(model.encode(prompt.context), [ids], prompt.suffix)[0]
        assert candidate.confidence == pytest.approx(math.exp(sum(text) + end))
        assert candidate.score == pytest.approx(sum(text) + ENDS * end)
    # A rewrite is longer than anybody expects to the letter.
    anew = structs.replace(request, task="rewrite", old="th * (2 + width)", width=None, language="", strength=1.0, n=4)
    candidates = fill(model, anew).candidates
    assert candidates
    for candidate in candidates:
        mean = fmean(map(math.log, candidate.token_confidence))
        assert candidate.confidence == pytest.approx(math.exp(mean))
