"""Reused keys and values give what fresh ones give, across the sliding window's edge, whatever typing did before."""

import random
from pathlib import Path

import pytest
import torch

from engine.models.base import Rows
from tests.engine.tiny import tiny_model

WINDOW = 16


@pytest.fixture(scope="module")
def model(released: Path):
    return tiny_model(released)


@pytest.fixture
def fresh(released: Path):
    return tiny_model(released)


def canvas_logits(model, context):
    canvas = torch.arange(40, 48)[None]
    rows = Rows(
        contexts=[context],
        canvas=canvas,
        lengths=[8],
        open=torch.ones_like(canvas, dtype=torch.bool),
        self_conditioning=None,
        conditioned=[False],
    )
    return model.step(rows).whole()


def ids(length: int, seed: int = 0) -> list[int]:
    chosen = random.Random(seed)
    return [chosen.randrange(20, 250) for _ in range(length)]


@pytest.mark.parametrize("length", [1, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW, 300])
def test_typing_on_gives_the_logits_of_a_fresh_cache(model, fresh, length: int):
    text = ids(length + 40)
    for end in range(length, length + 40, 7):
        model.encode(text[:end])
    reused = model.encode(text)
    torch.testing.assert_close(canvas_logits(model, reused), canvas_logits(fresh, fresh.encode(text)))


@pytest.mark.parametrize("length", [WINDOW - 2, WINDOW + 5, 5 * WINDOW])
@pytest.mark.parametrize("kept", [3, WINDOW - 3, WINDOW + 3])
def test_a_changed_tail_gives_the_logits_of_a_fresh_cache(model, fresh, length: int, kept: int):
    text = ids(length, seed=1)
    model.encode(text)
    changed = text[:kept] + ids(length, seed=2)
    torch.testing.assert_close(canvas_logits(model, model.encode(changed)), canvas_logits(fresh, fresh.encode(changed)))


def test_typing_one_token_encodes_one_token(model):
    text = ids(200, seed=3)
    model.encode(text[:-1])
    asked, reused = model.cache.tokens_requested, model.cache.tokens_reused
    model.encode(text)
    assert model.cache.tokens_requested - asked == 200
    assert model.cache.tokens_reused - reused == 199


def test_a_living_context_keeps_its_keys_when_another_takes_its_prefix(model, fresh):
    """A long request is paused between steps while somebody types in the same file."""
    text = ids(100, seed=4)
    paused = model.encode(text)
    before = canvas_logits(model, paused)
    model.encode(text[:60] + ids(40, seed=5))
    model.encode(text + ids(500, seed=6))
    assert torch.equal(canvas_logits(model, paused), before)


@pytest.mark.parametrize("length", [WINDOW - 2, 300])
def test_a_canvas_behind_a_context_leaves_no_trace(model, fresh, length: int):
    text = ids(length + 40, seed=3)
    first = model.encode(text[:length])
    seen = canvas_logits(model, first)
    longer = model.encode(text)
    # Behind the shorter context lie tokens of the longer one now.
    torch.testing.assert_close(canvas_logits(model, first), seen)
    torch.testing.assert_close(canvas_logits(model, longer), canvas_logits(fresh, fresh.encode(text)))


def test_the_budget_lets_go_of_what_was_unused_longest(fresh):
    fresh.cache.budget_nbytes = 0
    first = fresh.encode(ids(50, seed=7))
    one = fresh.cache.nbytes
    fresh.encode(ids(50, seed=8))
    assert fresh.cache.nbytes == one, "the first store is gone"
    assert canvas_logits(fresh, first).isfinite().all(), "its living context is not"


def test_stores_within_the_budget_stay(fresh):
    first, second = ids(50, seed=9), ids(50, seed=10)
    fresh.encode(first)
    fresh.encode(second)
    reused = fresh.cache.tokens_reused
    fresh.encode(first)
    assert fresh.cache.tokens_reused - reused == 50


def test_the_first_tokens_alone_are_no_reason_to_give_up_a_long_store(fresh):
    """Two files begin alike; going from one to the other and back costs nothing."""
    first, second = ids(100, seed=11), ids(2, seed=11) + ids(98, seed=12)
    fresh.encode(first)
    fresh.encode(second)
    reused = fresh.cache.tokens_reused
    fresh.encode(first)
    assert fresh.cache.tokens_reused - reused == 100


def test_a_cache_that_shrinks_is_empty_and_has_half_the_room(fresh):
    fresh.encode(ids(300))
    before = fresh.cache.budget_nbytes
    fresh.shrink_caches()
    assert (fresh.cache.nbytes, fresh.cache.budget_nbytes) == (0, before // 2)
    fresh.shrink_caches()
    assert fresh.cache.budget_nbytes == before // 4
