"""The baselines: the same weights read left to right, and transformers' own generate."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from engine.common.errors import BadInput
from engine.common.request import FillRequest
from engine.lab.baselines.generate import fill_by_generate, generate, released_class
from engine.lab.baselines.left_to_right import cut, fill_by_causal_head, fill_left_to_right, gap_tokens, meeting
from engine.lab.eval.rows import ROWS, chosen_rows, possible
from engine.models.base import Prompt
from engine.models.gemma.model import DiffusionGemma
from engine.models.oracle.model import Case, Oracle
from tests.engine.learn.tiny import encode_rows
from tests.engine.tiny import tiny_model

REQUEST = FillRequest(prefix="def area(width):\n    return wid", suffix="\n\nprint(area(3))\n", max_tokens=12)


@pytest.fixture(scope="module")
def model(released: Path) -> DiffusionGemma:
    return tiny_model(released)


def test_the_cache_changes_no_token(model: DiffusionGemma):
    """Beyond the window of the sliding layers, so that they must look at the right end of it."""
    ids = model.tokenize("def area(width):\n    return width * 2\n\n\nprint(")
    said = list(islice(model.next_tokens(ids), 24))
    with torch.inference_mode():
        hidden = encode_rows(model.network, torch.tensor([[*ids, *said]]))
        recomputed = model.network.logits(hidden)[0].argmax(dim=-1).tolist()
    assert said == recomputed[len(ids) - 1 : -1]
    assert len(ids) + len(said) > 2 * model.network.config.sliding_window


def test_the_context_can_be_used_again(model: DiffusionGemma):
    ids = model.tokenize("value = compute(")
    first = list(islice(model.next_tokens(ids), 6))
    assert list(islice(model.next_tokens(ids), 6)) == first


def test_at_most_the_tokens_asked_for_are_read(model: DiffusionGemma):
    filled = fill_left_to_right(model, REQUEST)
    assert 1 <= filled.forwards <= REQUEST.max_tokens


def test_the_causal_head_writes_as_many_tokens_as_told_greedy_or_drawn(
    model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch
):
    said: list[list[int]] = []

    def tokens(*given: Any) -> Iterator[int]:
        said.append([])
        for token in gap_tokens(*given):
            said[-1].append(token)
            yield token

    monkeypatch.setattr("engine.lab.baselines.left_to_right.gap_tokens", tokens)
    told = replace(REQUEST, width=12)
    head = model.tokenize(model.prompt(told).head)
    for seed, sampled in ((0, False), (1, False), (0, True), (1, True)):
        filled = fill_by_causal_head(model, replace(told, seed=seed), sampled=sampled)
        assert (filled.width, filled.forwards) == (12, len(said[-1])) == (12, 12 - len(head))
    assert said[0] == said[1]
    assert len({tuple(each) for each in said}) == 3


def test_what_the_causal_head_writes_is_validated(model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch):
    ids = [model.tokenize(letter)[0] for letter in "th\n)))"]

    def prompt(asked: FillRequest) -> Prompt:
        return Prompt(context=tuple(model.tokenize(asked.prefix)), suffix=())

    monkeypatch.setattr(model, "prompt", prompt)

    def tokens(*given: object) -> Iterator[int]:
        return iter(ids)

    monkeypatch.setattr("engine.lab.baselines.left_to_right.gap_tokens", tokens)
    filled = fill_by_causal_head(model, replace(REQUEST, language="python", width=len(ids)))
    assert [(each.text.strip(), each.syntax) for each in filled.candidates] == [("th", "ok")]


@pytest.mark.parametrize(("said", "forwards"), [("x + y", 6), ("x" * 40, 20), ("x\n\nprint(area(3))\n", 17)])
def test_every_token_that_was_computed_counts(
    model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch, said: str, forwards: int
):
    """One that ends the answer, too; none beyond the longest answer or the suffix."""
    computed: list[int] = []

    def next_tokens(ids: object) -> Iterator[int]:
        for token in (*(model.tokenize(letter)[0] for letter in said), model.info.pad_id):
            computed.append(token)
            yield token

    monkeypatch.setattr(model, "next_tokens", next_tokens)
    filled = fill_left_to_right(model, replace(REQUEST, max_tokens=20))
    assert (filled.forwards, len(computed)) == (forwards, forwards)


def test_rows_that_a_model_has_not_got_what_for_are_left_out_or_refused(model: DiffusionGemma):
    oracle, told = Oracle("oracle", [Case(text="a▮b▮")]), list[str]()
    names = [row.name for row in possible(ROWS, oracle, told.append)]
    assert "left to right" not in names
    assert "generate" not in names
    assert "causal" not in names
    assert len(told) == 7
    assert "no causal encoder" in told[0]
    for rows in (chosen_rows(["left to right"]), chosen_rows(["generate"])):
        with pytest.raises(BadInput, match="leave it out"):
            possible(rows, oracle)
        assert possible(rows, model) == rows


@pytest.mark.parametrize(
    ("text", "suffix", "answer"),
    [
        ("a + b)\n\nprint(1)", ")\n\nprint(1)\n", "a + b"),
        ("x = 1\n    return x\n", "    return x\n", "x = 1\n"),
        ("x) + f(y)\n", ")\n", "x"),
        ("one\ntwo\nthree\n", "\nnever\n", "one"),
        ("\n    one\ntwo\n", "    never\n", "\n    one\n"),
        ("one\r\ntwo", "\r\nnever", "one"),
        ("one\ntwo", "", "one"),
        ("", "x", ""),
    ],
)
def test_a_text_is_cut_where_it_meets_the_suffix_else_behind_its_first_line(text: str, suffix: str, answer: str):
    assert cut(text, suffix) == answer


def test_a_short_suffix_is_met_only_with_more_of_it():
    assert meeting("f(a)\n", ")\n\nprint()\n") is None
    assert meeting("f(a)\n\nprint()", ")\n\nprint()\n") == 3
    assert meeting("anything", "\n  \n") is None


def test_generate_fills_one_canvas_in_as_many_steps_as_told(model: DiffusionGemma):
    ids = model.tokenize("def area(width):\n    return ")
    passes: list[int] = []
    module = released_class(model.network)
    hook = module.model.decoder.register_forward_hook(lambda *_: passes.append(1))
    try:
        said = generate(module, model.info, ids, model.info.sampling, in_full=True)
    finally:
        hook.remove()
    assert len(said) == model.info.canvas_length
    assert len(passes) == model.info.sampling.max_steps


def test_generate_answers_a_request(model: DiffusionGemma):
    filled = fill_by_generate(model, REQUEST)
    assert filled.width == model.info.canvas_length
    assert filled.ms.total > 0
