"""What the causal encoder writes by itself, beside what canvases say."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_hypothesis
from itertools import islice, repeat, takewhile
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from engine.common.request import FillRequest
from engine.fill.causal_hypothesis import HANDICAP, LONGEST, causal_hypothesis
from engine.fill.deadline import Deadline
from engine.fill.executor import drive
from engine.fill.gap import Gap
from engine.fill.gap_opening import open_gap
from engine.fill.hypotheses import NO_ROW, Hypothesis
from engine.fill.loading import load
from engine.fill.pipeline import Parts, fill, infill
from engine.fill.ranking import standing
from engine.lab.baselines.left_to_right import gap_tokens
from engine.models.base import DraftTree
from engine.models.gemma.model import DiffusionGemma
from engine.models.oracle.model import Case, Oracle

BEGUN = (
    "class Box:\n    def __init__(self, width, height, depth):\n"
    "        self.width = width\n        self.height = height\n"
)
REQUEST = FillRequest(
    prefix=f"{BEGUN}        ",
    suffix="\n\n    def area(self):\n        return self.depth\n",
    language="python",
)


@pytest.fixture(scope="module")
def model() -> DiffusionGemma:
    model = load("bundled", "cpu").model
    assert isinstance(model, DiffusionGemma)
    return model


@pytest.fixture(autouse=True)
def nothing_is_read_yet(model: DiffusionGemma) -> None:
    model.forget()


def gap_of(model: Any, request: FillRequest = REQUEST, **changes: Any) -> Gap:
    gap = open_gap(model, request, **changes)
    gap.predicted_widths = model.widths(gap.context, gap.suffix)
    return gap


def known(gap: Gap, text: str) -> Hypothesis:
    """A text as a canvas may say it, and as it is read."""
    ids = tuple(gap.model.tokenize(text))
    score = tuple(gap.model.score(gap.context, [ids], gap.suffix)[0])
    return Hypothesis(row=0, text=text, ids=ids, confidence=(0.5,) * len(ids), score=score)


def opinion(gap: Gap, *others: Hypothesis) -> list[Hypothesis]:
    return drive(gap.model, causal_hypothesis(gap, others))


def test_it_is_what_the_model_finds_likeliest_token_after_token(model: DiffusionGemma):
    gap = gap_of(model)
    (made,) = opinion(gap)
    assert [*made.ids] == [*takewhile(lambda token: token != model.info.end_id, gap_tokens(gap, ()))]
    assert made.text == model.detokenize(made.ids)
    assert (made.row, made.syntax, made.handicap) == (NO_ROW, "ok", HANDICAP)
    # What follows its like in the file is guessed, and one pass says whether it is right.
    assert 1 < gap.written < len(made.ids)


@dataclass(frozen=True)
class ToldText:
    written: tuple[int, ...]
    is_read: bool = False
    unread: int = 0


def say(monkeypatch: pytest.MonkeyPatch, model: DiffusionGemma, tokens: Iterable[int]) -> None:
    """Let the model find these the likeliest, and the gap's end after them."""
    told = [*islice(tokens, LONGEST + 2), model.info.end_id]
    trees: list[DraftTree] = []

    def check(text: ToldText, tree: DraftTree, canvas: int | None = None) -> Tensor:
        trees.append(tree)
        logits = torch.zeros(1 + len(tree.ids), model.vocabulary.size)
        depths = [len(text.written)]
        for parent in tree.parents:
            depths.append(depths[parent + 1] + 1)
        for row, depth in zip(logits, depths, strict=True):
            row[told[min(depth, len(told) - 1)]] = 30.0
        return logits

    def accept(text: ToldText, path: Sequence[int]) -> ToldText:
        return ToldText((*text.written, *(trees[-1].ids[at] for at in path)))

    def begin(context: object, suffix: object, written: Sequence[int]) -> ToldText:
        return ToldText(tuple(written))

    monkeypatch.setattr(model, "begin", begin)
    monkeypatch.setattr(model, "check", check)
    monkeypatch.setattr(model, "accept", accept)


def test_a_text_that_ends_within_a_character_is_not_offered(model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch):
    # Characters that are no tokens have one for each byte.
    tokens = model.tokenize("größe")[:-2]
    assert "\N{REPLACEMENT CHARACTER}" in model.detokenize(tokens)
    gap = gap_of(model, FillRequest(prefix='print("', suffix='")\n', language="python"))
    for said, offered in ((model.tokenize("größe"), True), (tokens, False)):
        say(monkeypatch, model, said)
        assert bool(opinion(gap)) == offered


@pytest.fixture
def unguessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One forward pass a token."""
    monkeypatch.setattr("engine.fill.causal_hypothesis._ROWS", 1)


@pytest.mark.usefixtures("unguessed")
def test_without_guesses_it_is_the_same_in_more_passes(model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch):
    gap = gap_of(model)
    (made,) = opinion(gap)
    assert gap.written == len(made.ids) + 1
    monkeypatch.undo()
    (guessed,) = opinion(gap_of(model))
    assert guessed.ids == made.ids
    assert guessed.score == pytest.approx(made.score, abs=5e-2)


def test_its_reading_is_that_of_any_other_text(model: DiffusionGemma):
    gap = gap_of(model)
    (made,) = opinion(gap)
    assert made.score == pytest.approx(known(gap, made.text).score, abs=5e-2)
    assert made.confidence == pytest.approx([math.exp(log) for log in made.score[:-1]])


@pytest.mark.usefixtures("unguessed")
def test_what_a_canvas_is_sure_of_is_not_written_again(model: DiffusionGemma):
    gap = gap_of(model)
    (made,) = opinion(gap)
    begun = gap_of(model)
    other = replace_hypothesis(known(begun, "self.width = height"), likeness=-10.0)
    sure = [*takewhile(lambda log: log > math.log(0.5), other.score)]
    assert 0 < len(sure) < len(other.ids)
    (again,) = opinion(begun, other)
    # What says where it is no longer sure says what comes there, too.
    assert (again.ids, begun.written) == (made.ids, gap.written - len(sure) - 1)
    assert again.score == pytest.approx(made.score, abs=5e-2)


def test_what_a_canvas_is_not_sure_of_is_guessed(model: DiffusionGemma):
    gap = gap_of(model)
    (made,) = opinion(gap)
    unsure = replace_hypothesis(made, row=0, score=(math.log(0.4), *made.score[1:]), likeness=-10.0, handicap=0.0)
    again = gap_of(model)
    assert opinion(again, unsure) == []  # it is what the canvas says
    assert again.written < gap.written


@pytest.mark.usefixtures("unguessed")
def test_what_was_read_of_another_gap_is_not_gone_on_from(model: DiffusionGemma):
    gap = gap_of(model)
    (made,) = opinion(gap)
    for prefix, suffix in ((f"{BEGUN}\n        ", REQUEST.suffix), (REQUEST.prefix, f"\n{REQUEST.suffix}")):
        model.forget()
        known(gap_of(model, replace(REQUEST, prefix=prefix, suffix=suffix)), made.text)
        again = gap_of(model)
        assert [each.ids for each in opinion(again)] == [made.ids]
        assert again.written == gap.written


def test_what_is_sure_to_its_end_needs_none(model: DiffusionGemma):
    gap = gap_of(model, replace(REQUEST, prefix=f"{REQUEST.prefix}self.depth = "))
    sure = known(gap, "depth")
    assert min(sure.score) > math.log(0.5)
    assert (opinion(gap, sure), gap.written) == ([], 0)


def test_it_is_given_up_as_soon_as_it_can_be_no_likelier(model: DiffusionGemma):
    gap = gap_of(model)
    better = Hypothesis(row=0, text="width", ids=(1,), confidence=(1.0,), score=(-0.8, 0.0), likeness=100.0)
    assert (opinion(gap, better), gap.written) == ([], 0)


def test_it_comes_first_only_where_it_is_clearly_likelier(model: DiffusionGemma):
    gap = gap_of(model)
    (made,) = opinion(gap)
    score = standing(gap, made, made.score)
    other = Hypothesis(row=0, text="0", ids=(1,), confidence=(0.1,), score=(-1.0,))
    lag = (score - standing(gap, other, other.score)) / gap.model.info.match_nats
    for ahead, offered in ((0.1, False), (-0.1, True)):
        other = replace_hypothesis(other, likeness=lag + ahead)
        assert bool(opinion(gap_of(model), other)) == offered


def test_a_single_line_stays_one(model: DiffusionGemma):
    asked = replace(REQUEST, prefix="def area(width, height):\n", single_line=True, suffix="\n")
    (made,) = opinion(gap_of(model, asked))
    assert "\n" not in made.text


def test_what_adds_a_problem_is_not_offered(model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch):
    say(monkeypatch, model, model.tokenize("width * height"))
    assert [made.text for made in opinion(gap_of(model))] == ["width * height"]
    say(monkeypatch, model, model.tokenize("width * (height"))
    assert opinion(gap_of(model)) == []


@pytest.mark.usefixtures("unguessed")
@pytest.mark.parametrize(("most", "written"), [(3, 4), (96, LONGEST + 1)])
def test_what_has_no_end_ends(model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch, most: int, written: int):
    say(monkeypatch, model, repeat(model.tokenize("x")[0]))
    gap = gap_of(model, replace(REQUEST, max_tokens=most))
    assert (opinion(gap), gap.written) == ([], written)


def test_a_deadline_ends_it(model: DiffusionGemma):
    gap = gap_of(model, deadline=Deadline(0.0, 0.0, lambda: 1.0))
    assert (opinion(gap), gap.written) == ([], 0)


def test_a_fill_is_no_less_likely_with_it(model: DiffusionGemma):
    asked = [
        REQUEST,
        replace(
            REQUEST, prefix="import json\n\n\ndef load(path):\n    with open(path) as file:\n        ", suffix="\n"
        ),
        replace(
            REQUEST, prefix="class Stack:\n    def __init__(self):\n        self.items = []\n\n    def pop(self):\n"
        ),
        replace(REQUEST, prefix="for index, name in ", suffix=":\n    print(index, name)\n"),
    ]
    for request in asked:
        alone, both = (
            drive(model, infill(model, request, parts=Parts(causal_hypothesis=way))).candidates[0]
            for way in (False, True)
        )
        assert both.score >= alone.score
    assert any(drive(model, infill(model, each)).forwards > drive(model, infill(model, each)).steps for each in asked)


def test_the_width_is_that_of_what_it_wrote(model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch):
    wide = model.tokenize("self.depth = max(width, height, depth)")
    gap = gap_of(model)
    assert len(wide) != max(gap.predicted_widths, key=gap.predicted_widths.__getitem__)
    say(monkeypatch, model, wide)

    def nothing(gap: Gap, fitted: object, rounds: int) -> Iterator[None]:
        yield from ()
        return []

    monkeypatch.setattr("engine.fill.pipeline.repaired", nothing)
    filled = fill(model, REQUEST)
    assert [each.text for each in filled.candidates] == [model.detokenize(wide)]
    assert filled.width == len(wide)


def test_a_told_width_and_other_models_have_none(model: DiffusionGemma):
    told = fill(model, replace(REQUEST, width=3))
    assert told.forwards == told.steps
    oracle = fill(Oracle("oracle", [Case(text="x = ▮max(a, b)▮\n")]), FillRequest(prefix="x = ", suffix="\n"))
    assert oracle.forwards == oracle.steps
