"""The masked family's forward passes against a plain computation from the stored tensors, in each published layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.fill.loading import load
from engine.models import kv_cache
from engine.models.base import Rows
from engine.models.kv_cache import KVCache, Part, Pass, cache_budget
from engine.models.masked.model import REUSE, Masked, TextContext
from tests.engine.models.masked.published import LAYOUTS, Layout, plain_logits, write_published


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
    canvas[1] = canvas[2] = model.info.noise.mask_id or 0
    expected = plain_logits(folder / layout, layout, context + canvas)[length:]
    batch = rows([model.encode(context)], [canvas], [range(7)])
    torch.testing.assert_close(model.step(batch).whole(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", ["dreamon", "llada"])
def test_rows_of_a_ragged_batch_do_not_see_each_other(folder: Path, layout: Layout):
    model = model_of(folder, layout)
    contexts, canvases = [drawn(seed, size) for seed, size in ((1, 5), (2, 30), (3, 1))], [drawn(4, 6), drawn(5, 9)]
    canvases.append(drawn(6, 3))
    asked = [[0, 1], [3, 8], [2]]
    logits = model.step(rows([model.encode(ids) for ids in contexts], canvases, asked)).whole().split([2, 2, 1])
    for context, canvas, places, found in zip(contexts, canvases, asked, logits, strict=True):
        expected = plain_logits(folder / layout, layout, context + canvas)
        torch.testing.assert_close(found, expected[[len(context) + at for at in places]], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", ["", "def f(self):\n\treturn  1", "😋é\r\n", "e\u0301 = '<|mask|><M>'", "\0\x7f"])
def test_any_text_survives_the_tokens(folder: Path, layout: Layout, text: str):
    model = model_of(folder, layout)
    ids = model.tokenize(text)
    assert model.detokenize(ids) == text
    assert not set(ids) & {*model.info.forbidden_ids, model.info.pad_id, model.info.noise.mask_id}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_but_text_may_enter_a_gap(folder: Path, layout: Layout):
    model = model_of(folder, layout)
    facts = model.info
    allowed = set(range(facts.noise.vocab_size)) - set(facts.forbidden_ids) - {facts.pad_id}
    assert all(model.vocabulary.bytes[token] for token in allowed)
    assert facts.noise.mask_id in facts.forbidden_ids
    assert (facts.expand_id is None) == (facts.length == "calibrated") == (layout != "dreamon")


@pytest.mark.parametrize("layout", ["dreamon", "llada"])
def test_a_remembered_pass_is_exact_where_nothing_changed(folder: Path, layout: Layout):
    """The second step sees the same canvas: computing the gap alone must give what computing everything gave."""
    model = model_of(folder, layout)
    mask = model.info.noise.mask_id or 0
    context, canvas = drawn(1, 60), [mask] * 6 + drawn(2, 50)
    batch = rows([model.encode(context)], [canvas], [range(6)])
    first, second = model.step(batch).whole(), model.step(batch).whole()
    (held,) = model.cache.passes(batch.contexts[0])
    assert held.uses == 2
    torch.testing.assert_close(second, first, rtol=1e-4, atol=1e-4)
    expected = plain_logits(folder / layout, layout, context + canvas)[60:66]
    torch.testing.assert_close(second, expected, rtol=1e-4, atol=1e-4)


def test_nothing_is_remembered_of_a_gap_of_another_width(folder: Path):
    model = model_of(folder, "dreamon")
    mask = model.info.noise.mask_id or 0
    context, suffix = model.encode(drawn(1, 60)), drawn(2, 60)
    model.step(rows([context], [[mask] * 4 + suffix], [range(4)]))
    grown = model.step(rows([context], [[mask] * 7 + suffix], [range(7)])).whole()
    expected = plain_logits(folder / "dreamon", "dreamon", [*context.ids, *[mask] * 7, *suffix])[60:67]
    torch.testing.assert_close(grown, expected, rtol=1e-4, atol=1e-4)


def test_passes_are_refreshed_and_forget_what_the_gap_no_longer_says(folder: Path):
    model = model_of(folder, "llada")
    mask = model.info.noise.mask_id or 0
    context, suffix = model.encode(drawn(1, 60)), drawn(2, 60)

    def step(gap: list[int], asked: list[int]) -> int:
        model.step(rows([context], [gap + suffix], [asked]))
        return len(model.cache.passes(context))

    assert [step([mask, mask, mask], [0, 1, 2]) for _ in range(5)] == [1, 1, 1, 1, 2]
    assert step([mask, 7, mask], [0, 2]) == 2
    assert step([mask, 7, mask], [0, 2]) == 2
    assert step([9, 7, mask], [2]) == 2
    assert [step([9, 7, mask], [2]) for _ in range(2)] == [3, 3]
    assert step([mask, 8, mask], [0, 2]) == 4, "the newest pass knows 9 and 7, the others are used up"


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Tokens of each part, run by run."""
    found: list[list[int]] = []
    signal = Masked.signal

    def noted(model: Masked, parts: Sequence[Part], ids: torch.Tensor) -> torch.Tensor | None:
        found.append([len(part.places) for part in parts])
        return signal(model, parts, ids)

    monkeypatch.setattr(Masked, "signal", noted)
    return found


def with_room_for(model: Masked, tokens: int) -> KVCache:
    size = model.network.token_nbytes
    model.cache = KVCache(len(model.network.layers), size, tokens * size, REUSE)
    return model.cache


def looks(model: Masked, context: TextContext, suffix: list[int], widths: Sequence[int]) -> torch.Tensor:
    mask = model.info.noise.mask_id or 0
    canvases = [[mask] * width + suffix for width in widths]
    return model.step(rows([context] * len(widths), canvases, [range(width) for width in widths])).whole()


@pytest.mark.parametrize("layout", ["dreamon", "llada"])
def test_what_is_run_in_parts_says_the_same(
    folder: Path, layout: Layout, sizes: list[list[int]], monkeypatch: pytest.MonkeyPatch
):
    model, suffix = model_of(folder, layout), drawn(2, 50)
    widths = (1, 2, 4, 6, 8, 12)
    gaps = [drawn(width, width) for width in widths]

    def answers() -> list[torch.Tensor]:
        context = model.encode(drawn(1, 60))
        said = [looks(model, context, suffix, widths), looks(model, context, suffix, widths)]
        scores = [torch.tensor(each) for each in model.score(context, gaps, suffix)]
        held = [key for kept in model.cache.passes(context) for key in (*kept.keys, *kept.values)]
        return [*said, *scores, *held]

    together = answers()
    assert max(map(len, sizes)) > 2
    sizes.clear()
    monkeypatch.setattr(kv_cache, "PASS", 250)
    torch.testing.assert_close(answers(), together, rtol=1e-4, atol=1e-4)
    assert all(sum(each) <= 250 for each in sizes)
    sizes.clear()
    monkeypatch.setattr(kv_cache, "PASS", 10)
    torch.testing.assert_close(answers(), together, rtol=1e-4, atol=1e-4)
    assert all(len(each) == 1 for each in sizes)


def test_all_gaps_together_remember_no_more_than_there_is_room_for(folder: Path, monkeypatch: pytest.MonkeyPatch):
    model, suffix = model_of(folder, "llada"), drawn(2, 50)
    unbounded, cache = model_of(folder, "llada"), with_room_for(model, 300)
    first, second = model.encode(drawn(1, 60)), model.encode(drawn(3, 60))
    filled: set[Pass] = set()
    add = Part.keys_and_values

    def added(part: Part, *told: Any) -> Any:
        if part.held is not None:
            filled.add(part.held)
        registered = {held for context in (first, second) for held in cache.passes(context)}
        assert sum(len(held.ids) for held in registered | filled) <= 300, "room is made first"
        return add(part, *told)

    for context, widths in ((first, (1, 2, 4)), (second, (1, 2)), (first, (1, 2, 4)), (first, (9, 10, 11, 12))):
        filled.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Part, "keys_and_values", added)
            found = looks(model, context, suffix, widths)
        torch.testing.assert_close(found, looks(unbounded, unbounded.encode(context.ids), suffix, widths))
        held = [kept for each in (first, second) for kept in cache.passes(each)]
        assert sum(part.nbytes for kept in held for part in (*kept.keys, *kept.values)) == cache.passes_nbytes
        assert 0 < cache.passes_nbytes <= cache.budget_nbytes
    assert len(cache.passes(first)) == 2
    assert not cache.passes(second)
    cache = with_room_for(model, 100)
    assert looks(model, model.encode(drawn(1, 60)), suffix, (1, 2)).shape[0] == 3
    assert not cache.passes_nbytes


def test_rows_that_have_no_room_do_not_drive_out_those_that_have(folder: Path, sizes: list[list[int]]):
    model, suffix = model_of(folder, "llada"), drawn(2, 50)
    with_room_for(model, 240)
    context = model.encode(drawn(1, 60))
    for _ in range(4):
        looks(model, context, suffix, (3, 4, 5))
    assert sizes == [[113, 114, 115], *[[3 + 8, 4 + 8, 115]] * 3]


def test_canvases_that_say_the_same_at_first_are_computed_once(folder: Path, sizes: list[list[int]]):
    model, suffix = model_of(folder, "llada"), drawn(2, 50)
    context = model.encode(drawn(1, 60))
    first, again = looks(model, context, suffix, (4, 4)).split(4)
    assert torch.equal(first, again)
    assert sizes == [[114]]


def test_room_is_shared_among_the_devices_of_the_layers(monkeypatch: pytest.MonkeyPatch):
    rooms = {"cuda": 500, "cpu": 5_000}
    monkeypatch.setattr(kv_cache, "_room", lambda device, reserved: max(rooms[device.type] - reserved, 0))
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    assert cache_budget([cpu] * 2, 0) == 5_000
    assert cache_budget([cuda] * 5 + [cpu], 0) == 600
    assert cache_budget([cuda] * 5 + [cpu], 450) == 60
    assert cache_budget([cuda] * 5 + [cpu], 9000) == 0


def test_what_is_not_worth_it_is_not_remembered(folder: Path):
    model = model_of(folder, "llada")
    mask = model.info.noise.mask_id or 0
    context = model.encode(drawn(1, 10))
    model.step(rows([context], [[mask] * 20 + drawn(2, 10)], [range(20)]))
    assert not model.cache.passes(context)


@pytest.mark.parametrize("layout", ["dreamon", "llada"])
def test_scores_are_pseudo_likelihoods_of_ends_and_suffix(folder: Path, layout: Layout):
    model = model_of(folder, layout)
    model.remembers = False
    mask = model.info.noise.mask_id or 0
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


def test_what_is_remembered_can_be_let_go(folder: Path):
    model, suffix = model_of(folder, "llada"), drawn(2, 50)
    context = model.encode(drawn(1, 60))
    looks(model, context, suffix, (3, 4, 5))
    room = model.cache.budget_nbytes
    assert model.cache.nbytes
    model.shrink_caches()
    assert (model.cache.nbytes, model.cache.budget_nbytes) == (0, room // 2)
