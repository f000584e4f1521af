"""Steps that remember: what they compute, and that it is what full ones compute as long as nothing around changed."""

import gc
from pathlib import Path

import pytest
import torch

from engine.fill.loading import Infiller, load
from engine.lab.bench.workload import forgetful
from engine.models.base import Rows
from engine.models.gemma.model import REUSE, DiffusionGemma
from tests.engine.tiny import signal_of, tiny_model
from tests.engine.toy_gaps import toy_gaps

GAP, LENGTH = range(4, 10), 40
MODELS = Path(__file__).parents[3] / "models"


@pytest.fixture
def model(released: Path) -> DiffusionGemma:
    return tiny_model(released)


def step_over(model: DiffusionGemma, *canvases: list[int], open_=GAP, context=None, conditioned: bool = True) -> Rows:
    """Canvases over one context; what their last step said is random, but the same for each."""
    asked = torch.zeros(len(canvases), LENGTH, dtype=torch.bool)
    asked[:, list(open_)] = True
    logits = torch.randn(len(open_), model.info.noise.vocab_size, generator=torch.Generator().manual_seed(1))
    return Rows(
        contexts=[context or model.encode(range(30, 50))] * len(canvases),
        canvas=torch.tensor(canvases),
        lengths=[LENGTH] * len(canvases),
        open=asked,
        self_conditioning=signal_of(model, logits).repeat(len(canvases), 1) if conditioned else None,
        conditioned=[conditioned] * len(canvases),
    )


def canvas(**changed: int) -> list[int]:
    ids = list(range(60, 60 + LENGTH))
    for at, token in changed.items():
        ids[int(at[1:])] = token
    return ids


def computed(model: DiffusionGemma, rows: Rows) -> list[list[int]]:
    parts = model.parts(rows)
    model.cache.plan(parts)
    return [list(part.places) for part in parts]


EVERYTHING, NEARBY = list(range(LENGTH)), [*GAP, *range(GAP.stop, GAP.stop + REUSE.near)]


def test_the_rest_is_remembered_until_it_is_refreshed(model: DiffusionGemma):
    rows = step_over(model, canvas())
    asked: list[list[int]] = []
    for _ in range(2 * REUSE.steps):
        asked += computed(model, rows)
        model.step(rows)
    assert asked == [EVERYTHING, *[NEARBY] * (REUSE.steps - 1)] * 2


def test_where_nothing_changed_the_logits_are_those_of_a_full_step(model: DiffusionGemma):
    rows = step_over(model, canvas())
    full = model.step(rows).whole()
    for _ in range(REUSE.steps - 1):
        torch.testing.assert_close(model.step(rows).whole(), full, rtol=1e-4, atol=1e-4)


def test_what_was_settled_since_is_computed_once(model: DiffusionGemma):
    context = model.encode(range(30, 50))
    model.step(step_over(model, canvas(), context=context))
    settled = step_over(model, canvas(_4=200), open_=range(5, 10), context=context)
    near = model.step(settled).whole()
    with forgetful(model):
        full = model.step(settled).whole()
    assert not torch.equal(near, full)
    assert (near - full).abs().mean() < (full - full.roll(1, 0)).abs().mean() / 4
    model.step(settled)
    assert computed(model, settled) == [[*range(5, 10), *range(10, 10 + REUSE.near)]]


@pytest.mark.parametrize(
    "change",
    [
        {"canvas": canvas(_30=200)},  # a pinned token is another one
        {"open_": range(4, 11)},  # a settled token is in question again
        {"conditioned": False},
    ],
)
def test_what_was_true_of_another_canvas_is_of_no_use(model: DiffusionGemma, change):
    context = model.encode(range(30, 50))
    model.step(step_over(model, canvas(), context=context))
    changed = dict(change)
    rows = step_over(model, changed.pop("canvas", canvas()), context=context, **changed)
    assert computed(model, rows) == [EVERYTHING]


def test_a_first_step_has_no_signal_and_leaves_nothing(model: DiffusionGemma):
    context = model.encode(range(30, 50))
    model.step(step_over(model, canvas(), context=context, conditioned=False))
    assert computed(model, step_over(model, canvas(), context=context)) == [EVERYTHING]


def test_canvases_of_one_width_each_have_their_own(model: DiffusionGemma):
    context = model.encode(range(30, 50))
    model.step(step_over(model, canvas(), canvas(), context=context))
    apart = step_over(model, canvas(_4=200), canvas(_4=201), open_=range(5, 10), context=context)
    together = model.step(apart).whole().split(5)
    for row, token in enumerate((200, 201)):
        alone = model.encode(range(30, 50))
        model.step(step_over(model, canvas(), context=alone))
        own = step_over(model, canvas(_4=token), open_=range(5, 10), context=alone)
        torch.testing.assert_close(together[row], model.step(own).whole(), rtol=1e-4, atol=1e-4)


def test_canvases_that_say_the_same_keep_their_order(model: DiffusionGemma):
    rows = step_over(model, canvas(), canvas())
    logits = torch.randn(12, model.info.noise.vocab_size, generator=torch.Generator().manual_seed(2))
    rows.self_conditioning = signal_of(model, logits)
    full = model.step(rows).whole()
    for _ in range(REUSE.steps + 2):
        torch.testing.assert_close(model.step(rows).whole(), full, rtol=1e-4, atol=1e-4)


def test_a_wide_gap_is_computed_in_full(model: DiffusionGemma):
    rows = step_over(model, canvas(), open_=range(2, 32))
    model.step(rows)
    assert computed(model, rows) == [EVERYTHING]


def test_a_step_that_failed_left_nothing(model: DiffusionGemma, monkeypatch: pytest.MonkeyPatch):
    """Another window's row may have broken it: then each row is computed again alone."""
    rows = step_over(model, canvas())
    expected = model.step(step_over(model, canvas())).whole()
    calls, attention = iter(range(100)), model.network.attention

    def failing(*given):
        if next(calls) == 1:
            raise RuntimeError("out of memory")
        return attention(*given)

    monkeypatch.setattr(model.network, "attention", failing)
    with pytest.raises(RuntimeError):
        model.step(rows)
    torch.testing.assert_close(model.step(rows).whole(), expected)


def test_nothing_outlives_its_context(model: DiffusionGemma):
    rows = step_over(model, canvas())
    model.step(rows)
    assert model.cache.passes_nbytes
    del rows
    gc.collect()
    assert not model.cache.passes_nbytes


@pytest.mark.parametrize("name", ["toy-absorbing", "toy-uniform"])
def test_it_changes_few_answers(name: str):
    infiller = load(str(MODELS / name), "cpu")
    gaps = toy_gaps(infiller, 8, seed=3)
    remembered = answers(infiller, gaps)
    assert isinstance(infiller.model, DiffusionGemma)
    with forgetful(infiller.model):
        in_full = answers(infiller, gaps)
    assert sum(a == b for a, b in zip(remembered, in_full, strict=True)) >= 7


def answers(infiller: Infiller, gaps) -> list[str]:
    filled = [
        infiller.fill(gap.prefix, gap.suffix, width=len(infiller.model.tokenize(gap.answer)), seed=0) for gap in gaps
    ]
    return [each.candidates[0].text if each.candidates else "" for each in filled]
