"""Rows whose gaps are too narrow or too wide, and a masked model that is trained on them and comes back whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from engine.fill.loading import load
from engine.learn.masked_rows import NOTHING, ControlTokens, hidden_gap, masked_loss, masked_row
from engine.learn.packed import PackedCorpus
from engine.models.base import Rows
from engine.models.masked.model import Masked
from engine.models.prompts.layout import BOS, EOS, MASK
from tests.engine.formats import choose
from tests.engine.toys.language import build_toy_corpus
from tests.engine.toys.masked import (
    MaskedRecipe,
    export_masked,
    masked_network,
    new_masked_model,
    train_masked,
)
from tests.engine.toys.masked_rows import EXPAND, TOKENS, toy_rows

TINY = MaskedRecipe(vocab=300, hidden=32, intermediate=48, layers=2, heads=2, rows=4, steps=12)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    build_toy_corpus(folder, seed=0, vocabulary=TINY.vocab, programs=40)
    return folder


def test_hidden_gaps_say_what_is_missing_and_what_is_too_much():
    rng = random.Random(0)
    seen: set[str] = set()
    for _ in range(300):
        tokens = [rng.randrange(20, 99) for _ in range(rng.randint(1, 30))]
        gap, truth = hidden_gap(tokens, TOKENS, rng)
        assert len(gap) == len(truth)
        assert all((token == MASK) == (said != NOTHING) for token, said in zip(gap, truth, strict=True))
        left = [said for said in truth if said != EOS]
        assert truth[: len(left)] == left, "slots too many are at the end"
        shown = [token if said == NOTHING else said for token, said in zip(gap, truth, strict=True)][: len(left)]
        if EXPAND in shown:
            seen.add("narrow")
            assert len(shown) < len(tokens)
            assert [token for token in shown if token != EXPAND] == _without_merged(tokens, shown)
        else:
            assert shown == tokens
            seen.add("wide" if EOS in truth else "fitting")
    assert seen == {"narrow", "wide", "fitting"}


def test_who_can_ask_for_nothing_sees_gaps_that_fit():
    rng = random.Random(0)
    tokens = [*range(20, 40)]
    for _ in range(50):
        gap, truth = hidden_gap(tokens, ControlTokens(mask=MASK, end=EOS), rng)
        assert [token if said == NOTHING else said for token, said in zip(gap, truth, strict=True)] == tokens
        assert MASK in gap


def test_what_a_place_says_of_the_next_token_stands_before_it():
    row = masked_row([7, 8], ([MASK, 9, MASK], [30, NOTHING, 31]), [5], shift=1)
    ids, truth = map(list, zip(*row, strict=True))
    assert ids == [7, 8, MASK, 9, MASK, 5]
    assert truth == [NOTHING, 30, NOTHING, 31, NOTHING, NOTHING]


def _without_merged(tokens: list[int], shown: list[int]) -> list[int]:
    """The tokens of `shown` in the order of `tokens`; fails where they are not in it."""
    left = iter(tokens)
    return [token for token in shown if token != EXPAND and any(token == other for other in left)]


def test_rows_are_texts_with_a_gap(corpus: Path):
    packed = PackedCorpus(corpus, "train")
    batch = toy_rows(packed, random.Random(1), 20)
    assert batch.ids.shape == batch.truth.shape
    assert set(batch.ids[:, 0].tolist()) == {BOS}
    assert (batch.truth[batch.ids != MASK] == NOTHING).all()
    assert (batch.truth[batch.ids == MASK] != NOTHING).all()


def test_a_trained_model_comes_back_with_the_logits_it_was_trained_with(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    torch.set_num_threads(1)
    said: list[str] = []
    module = train_masked(TINY, corpus, 0, said.append, every=6)
    assert len(said) == 2
    batch = toy_rows(PackedCorpus(corpus, "train"), random.Random(7), 8)
    with torch.no_grad():
        trained = masked_loss(masked_network(module, TINY), batch)
        fresh = masked_loss(masked_network(new_masked_model(TINY, 0), TINY), batch)
    assert trained < fresh - 0.5
    export_masked(module, TINY, corpus / "tokenizer", tmp_path / "model", "expand")
    # Where a processor is faster in bfloat16, states are rounded to it before they are multiplied.
    choose(monkeypatch)
    model = load(str(tmp_path / "model"), "cpu").model
    assert isinstance(model, Masked)
    assert (model.info.length, model.info.expand_id, model.info.pad_id) == ("expand", EXPAND, EOS)
    ids = batch.ids[0, : batch.lengths[0]].tolist()
    rows = Rows(
        contexts=[model.encode(ids[:3])],
        canvas=torch.tensor([ids[3:]]),
        lengths=[len(ids) - 3],
        open=torch.ones(1, len(ids) - 3, dtype=torch.bool),
        self_conditioning=None,
        conditioned=[False],
    )
    with torch.no_grad():
        expected = (
            module.bfloat16()
            .float()(torch.tensor([ids]), attention_mask=torch.ones(1, 1, len(ids), len(ids), dtype=torch.bool))
            .logits[0, 3:]
        )
    torch.testing.assert_close(model.step(rows).whole(), expected, rtol=1e-3, atol=1e-3)
