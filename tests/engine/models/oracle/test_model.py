"""The oracle must be right, or every test that trusts it is worth nothing."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.common.errors import ModelError
from engine.common.request import FillRequest
from engine.models.base import Rows
from engine.models.oracle.model import PAD, Case, Oracle, Slip, read_oracle

ADD = "def add(a, b):\n    return ▮a + b▮\n"


def oracle(*cases: Case | str) -> Oracle:
    return Oracle("oracle", [Case(text=case) if isinstance(case, str) else case for case in cases])


def context(model: Oracle, prefix: str, suffix: str, instruction: str = ""):
    return model.encode(model.prompt(FillRequest(prefix=prefix, suffix=suffix, instruction=instruction)).context)


def answers(model: Oracle, prefix: str, suffix: str, instruction: str = "") -> list[str]:
    return [model.detokenize(ids) for ids in context(model, prefix, suffix, instruction).answers]


def one_step(model: Oracle, contexts: list, canvas: torch.Tensor) -> torch.Tensor:
    rows = Rows(
        contexts=contexts,
        canvas=canvas,
        lengths=[canvas.shape[1]] * len(contexts),
        open=torch.ones_like(canvas, dtype=torch.bool),
        self_conditioning=None,
        conditioned=[False] * len(contexts),
    )
    return model.step(rows).whole().unflatten(0, canvas.shape)


@given(st.text())
def test_any_text_survives_its_tokens(text):
    model = oracle("naïve ▮x▮ = '😋'\r\n")
    assert model.detokenize(model.tokenize(text)) == text


@pytest.mark.parametrize(
    ("cases", "prefix", "suffix", "answer"),
    [
        ([ADD], "def add(a, b):\n    return ", "\n", "a + b"),
        ([ADD], "def add(a, b):\n    return a ", "\n", "+ b"),  # typed along
        ([ADD], "def add(", "):\n    return a + b\n", "a, b"),  # elsewhere in the case
        (["▮x = 1\ny = 2\n▮"], "x = ", "\ny = 2\n", "1"),  # a whole file
        (["x = '😋' + ▮y▮\n"], "x = '😋' + ", "\n", "y"),
        (["▮a▮"], "", "", "a"),
        ([ADD], "something else", "", ""),
        (["(▮1▮)\n(▮2▮)".replace("▮", "", 2)], "(1)\n(", ")", "2"),  # the nearer of two places
        (["p" * 500 + "▮a▮" + "s" * 500 + "\n"], "p" * 500, "s" * 500 + "\n", "a"),  # further than it looks
    ],
)
def test_an_answer_is_what_stands_between_in_the_case(cases, prefix, suffix, answer):
    assert answers(oracle(*cases), prefix, suffix)[0] == answer


def test_a_case_with_an_instruction_answers_only_that():
    model = oracle(Case(text="x = ▮2▮\n", instruction="double"), "x = ▮1▮\n")
    assert answers(model, "x = ", "\n", "double") == ["2"]
    assert answers(model, "x = ", "\n", "anything else") == ["1"]


def test_a_case_of_a_language_answers_only_there():
    model = oracle(Case(text="x = ▮2▮\n", language="go"), "x = ▮1▮\n")
    asked = [FillRequest(prefix="x = ", suffix="\n", language=language) for language in ("go", "python")]
    contexts = [model.encode(model.prompt(request).context) for request in asked]
    assert [model.detokenize(context.answers[0]) for context in contexts] == ["2", "1"]


def test_where_a_line_is_all_that_is_asked_for_it_ends_there():
    model = oracle("▮a = 1\nb = 2\n▮c = 3\n")
    asked = [FillRequest(prefix=prefix, suffix="c = 3\n", single_line=True) for prefix in ("", "a", "a = 1")]
    contexts = [model.encode(model.prompt(request).context) for request in asked]
    assert [model.detokenize(context.answers[0]) for context in contexts] == ["a = 1", " = 1", ""]
    assert model.detokenize(contexts[0].suffix) == "c = 3\n"


def test_rows_of_one_request_get_the_alternatives_by_turns():
    model = oracle(Case(text="x = ▮1▮\n", alternatives=("2", "3")))
    gap = context(model, "x = ", "\n")
    canvas = torch.full((3, 1), PAD)
    assert [model.detokenize(row) for row in one_step(model, [gap] * 3, canvas).argmax(-1).tolist()] == ["1", "2", "3"]
    # A row keeps the answer that it has begun, wherever it stands.
    canvas = torch.tensor([model.tokenize("3")])
    assert model.detokenize(one_step(model, [gap], canvas).argmax(-1)[0].tolist()) == "3"


def test_tokens_are_revealed_from_the_left_with_the_confidence_that_was_set():
    model = oracle(Case(text="▮a+c▮", reveal=1, confidence=0.9))
    gap = context(model, "", "")
    canvas = torch.full((1, 4), PAD)
    for shown in (1, 2, 3):
        probabilities = one_step(model, [gap], canvas).softmax(-1)
        canvas = probabilities.argmax(-1)
        assert model.detokenize([token for token in canvas[0].tolist() if token != PAD]) == "a+c"[:shown]
        assert probabilities.max(-1).values[0, shown - 1].item() == pytest.approx(0.9, abs=1e-5)
        assert probabilities.max(-1).values[0, 3].item() < 0.1


def test_a_long_answer_ends_with_a_line_within_reach():
    text = "▮if (a) {\n  b(1)\n}\nc(\n  2,\n)\n▮"
    assert answers(oracle(Case(text=text, reach=20)), "", "") == ["if (a) {\n  b(1)\n}"]
    assert answers(oracle(Case(text=text, reach=3)), "", "") == ["if ("]
    assert answers(oracle(Case(text=text)), "", "") == [text.strip("▮")]


@pytest.mark.parametrize(
    "head",
    ["if x:", "y = (a) =>", "for x in y:", 'z = """A string', "total = one +"],
)
def test_a_long_answer_does_not_end_where_more_has_to_come(head):
    text = f"begun = True\n{head}\n    b + c + d + e + f + g + h + i + j\n"
    assert answers(oracle(Case(text=f"▮{text}▮", reach=len(oracle().tokenize(head)) + 14)), "", "") == ["begun = True"]


def test_a_long_answer_that_begins_in_a_long_string_may_end_behind_it():
    text = 'def f():\n    """What it does,\n    and why."""\n    return a + b + c + d + e\n'
    assert answers(oracle(Case(text=f"▮{text}▮", reach=26)), text[:24], "") == ['does,\n    and why."""']


def test_a_slip_stays_until_it_is_taken_off_the_canvas():
    model = oracle(Case(text="▮a+c▮", slip=Slip(at=1, text="(")))
    gap = context(model, "", "")
    noise = torch.full((1, 3), PAD)
    slipped = one_step(model, [gap], noise).argmax(-1)
    assert model.detokenize(slipped[0].tolist()) == "a(c"
    assert torch.equal(one_step(model, [gap], slipped).argmax(-1), slipped)
    assert model.detokenize(one_step(model, [gap], noise).argmax(-1)[0].tolist()) == "a+c"


def test_only_open_positions_have_logits():
    model = oracle("▮ab c▮")
    gap = context(model, "", "")
    rows = Rows(
        contexts=[gap],
        canvas=torch.full((1, 3), PAD),
        lengths=[3],
        open=torch.tensor([[False, True, True]]),
        self_conditioning=None,
        conditioned=[False],
    )
    assert model.detokenize(model.step(rows).whole().argmax(-1).tolist()) == " c"


def test_the_score_tells_answers_from_anything_else():
    model = oracle(ADD)
    gap = context(model, "def add(a, b):\n    return ", "\n")
    right, wrong = model.score(gap, [model.tokenize("a + b"), model.tokenize("a - b")], model.tokenize("\n"))
    assert sum(right) > -0.01
    assert sum(wrong) < -5


def test_alternatives_rank_in_their_order():
    model = oracle(Case(text="x = ▮1▮\n", alternatives=("2", "3")))
    gaps = [model.tokenize(text) for text in "123"]
    first, second, third = model.score(context(model, "x = ", "\n"), gaps, model.tokenize("\n"))
    assert sum(first) > sum(second) > sum(third) > -1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not valid"),
        (json.dumps({"cases": [{"text": "no gap"}]}), "▮"),
        (json.dumps({"cases": [{"text": "▮", "colour": 1}]}), "colour"),
        (json.dumps({}), "cases"),
    ],
)
def test_a_bad_file_is_named_in_one_sentence(tmp_path, content, complaint):
    path = tmp_path / "oracle.json"
    path.write_text(content)
    with pytest.raises(ModelError, match=complaint):
        read_oracle(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"none\.json can't be read"):
        read_oracle(tmp_path / "none.json")
