"""The masked family's forward passes against a plain computation from the stored tensors, in each published layout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.checkpoints.loading import load
from engine.models.base import Rows
from engine.models.masked import Masked
from engine.request import FillRequest
from tests.engine.models.published import LAYOUTS, Layout, plain_logits, write_published


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    base = tmp_path_factory.mktemp("published")
    for layout in LAYOUTS:
        write_published(base / layout, layout)
    return base


def model_of(folder: Path, layout: Layout) -> Masked:
    model = load(str(folder / layout), "cpu").model
    assert isinstance(model, Masked)
    return model


def rows(contexts, canvases, asked) -> Rows:
    """`asked`: which positions of each canvas are open."""
    width = max(map(len, canvases))
    open_ = torch.zeros(len(canvases), width, dtype=torch.bool)
    for row, places in enumerate(asked):
        open_[row, list(places)] = True
    return Rows(
        contexts=contexts,
        canvas=torch.tensor([[*ids, *[0] * (width - len(ids))] for ids in canvases]),
        lengths=[len(ids) for ids in canvases],
        open=open_,
        self_conditioning=None,
        conditioned=[False] * len(canvases),
    )


def drawn(seed: int, length: int) -> list[int]:
    return torch.randint(0, 250, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("length", [0, 1, 9])
def test_a_step_gives_the_published_logits(folder: Path, layout: Layout, length: int):
    model = model_of(folder, layout)
    context, canvas = drawn(1, length), drawn(2, 7)
    canvas[1] = canvas[2] = model.facts.noise.mask_id or 0
    expected = plain_logits(folder / layout, layout, context + canvas)[length:]
    batch = rows([model.encode(context)], [canvas], [range(7)])
    torch.testing.assert_close(model.step(batch), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", ["dreamon", "llada"])
def test_rows_of_a_ragged_batch_do_not_see_each_other(folder: Path, layout: Layout):
    model = model_of(folder, layout)
    contexts, canvases = [drawn(seed, size) for seed, size in ((1, 5), (2, 30), (3, 1))], [drawn(4, 6), drawn(5, 9)]
    canvases.append(drawn(6, 3))
    asked = [[0, 1], [3, 8], [2]]
    logits = model.step(rows([model.encode(ids) for ids in contexts], canvases, asked)).split([2, 2, 1])
    for context, canvas, places, found in zip(contexts, canvases, asked, logits, strict=True):
        expected = plain_logits(folder / layout, layout, context + canvas)
        torch.testing.assert_close(found, expected[[len(context) + at for at in places]], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", ["", "def f(self):\n\treturn  1", "😋é\r\n", "e\u0301 = '<|mask|><M>'", "\0\x7f"])
def test_any_text_survives_the_tokens(folder: Path, layout: Layout, text: str):
    model = model_of(folder, layout)
    ids = model.tokenize(text)
    assert model.detokenize(ids) == text
    assert not set(ids) & {*model.facts.forbidden_ids, model.facts.pad_id, model.facts.noise.mask_id}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_ends_behind_its_last_line_whatever_its_line_ends(folder: Path, layout: Layout):
    model = model_of(folder, layout)
    crlf, lf = (model.prompt(FillRequest(prefix="x = ", suffix=suffix)) for suffix in ("1\r\n", "1\n"))
    assert crlf == lf


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_but_text_may_enter_a_gap(folder: Path, layout: Layout):
    model = model_of(folder, layout)
    facts = model.facts
    allowed = set(range(facts.noise.vocab_size)) - set(facts.forbidden_ids) - {facts.pad_id}
    assert all(model.spelling(token) for token in allowed)
    assert facts.noise.mask_id in facts.forbidden_ids
    assert (facts.expand_id is None) == (facts.length == "calibrated") == (layout != "dreamon")


@pytest.mark.parametrize("layout", ["dreamon", "llada"])
def test_a_remembered_pass_is_exact_where_nothing_changed(folder: Path, layout: Layout):
    """The second step sees the same canvas: computing the gap alone must give what computing everything gave."""
    model = model_of(folder, layout)
    mask = model.facts.noise.mask_id or 0
    context, canvas = drawn(1, 60), [mask] * 6 + drawn(2, 50)
    batch = rows([model.encode(context)], [canvas], [range(6)])
    first, second = model.step(batch), model.step(batch)
    (held,) = batch.contexts[0].passes  # type: ignore[attr-defined]
    assert held.uses == 2
    torch.testing.assert_close(second, first, rtol=1e-4, atol=1e-4)
    expected = plain_logits(folder / layout, layout, context + canvas)[60:66]
    torch.testing.assert_close(second, expected, rtol=1e-4, atol=1e-4)


def test_nothing_is_remembered_of_a_gap_of_another_width(folder: Path):
    model = model_of(folder, "dreamon")
    mask = model.facts.noise.mask_id or 0
    context, suffix = model.encode(drawn(1, 60)), drawn(2, 60)
    model.step(rows([context], [[mask] * 4 + suffix], [range(4)]))
    grown = model.step(rows([context], [[mask] * 7 + suffix], [range(7)]))
    expected = plain_logits(folder / "dreamon", "dreamon", [*context.ids, *[mask] * 7, *suffix])[60:67]
    torch.testing.assert_close(grown, expected, rtol=1e-4, atol=1e-4)


def test_passes_are_refreshed_and_forget_what_the_gap_no_longer_says(folder: Path):
    model = model_of(folder, "llada")
    mask = model.facts.noise.mask_id or 0
    context, suffix = model.encode(drawn(1, 60)), drawn(2, 60)

    def step(gap: list[int], asked: list[int]) -> int:
        model.step(rows([context], [gap + suffix], [asked]))
        return len(context.passes)

    assert [step([mask, mask, mask], [0, 1, 2]) for _ in range(5)] == [1, 1, 1, 1, 2]
    assert step([mask, 7, mask], [0, 2]) == 2
    assert step([mask, 7, mask], [0, 2]) == 2
    assert step([9, 7, mask], [2]) == 2
    assert [step([9, 7, mask], [2]) for _ in range(2)] == [3, 3]
    assert step([mask, 8, mask], [0, 2]) == 4, "the newest pass knows 9 and 7, the others are used up"


def test_what_is_not_worth_it_is_not_remembered(folder: Path):
    model = model_of(folder, "llada")
    mask = model.facts.noise.mask_id or 0
    context = model.encode(drawn(1, 10))
    model.step(rows([context], [[mask] * 20 + drawn(2, 10)], [range(20)]))
    assert context.passes == []


@pytest.mark.parametrize("layout", ["dreamon", "llada"])
def test_scores_are_pseudo_likelihoods_of_ends_and_suffix(folder: Path, layout: Layout):
    model = model_of(folder, layout)
    model.remembers = False
    mask = model.facts.noise.mask_id or 0
    prefix, suffix, gap = drawn(1, 12), drawn(2, 20), drawn(3, 11)
    context = model.encode(prefix)
    # As in a rewrite, more than the suffix stands fixed behind the noise.
    model.step(rows([context], [[mask] * 7 + drawn(4, 4) + suffix], [range(7)]))
    (found,) = model.score(context, [gap], suffix)
    guessed = [*range(4), *range(7, 19)]
    expected: list[float] = []
    for turn in range(2):
        hidden = guessed[turn::2]
        whole = prefix + gap + suffix
        ids = [mask if at - 12 in hidden else token for at, token in enumerate(whole)]
        logs = plain_logits(folder / layout, layout, ids).log_softmax(-1)
        expected += [float(logs[12 + at, whole[12 + at]]) for at in hidden]
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_an_empty_gap_and_a_missing_suffix_have_scores(folder: Path):
    model = model_of(folder, "llada")
    context = model.encode([5, 6])
    assert [len(found) for found in model.score(context, [[], [1, 2]], ())] == [0, 2]
    assert [len(found) for found in model.score(context, [[]], [3] * 20)] == [8]
