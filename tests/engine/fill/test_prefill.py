"""Long contexts are encoded piece by piece, and no more of them than a deadline leaves time for."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from engine.common.request import FillRequest
from engine.fill.executor import Step, drive
from engine.fill.pipeline import infill
from engine.lab.bench.families import random_model
from engine.models.base import PIECE
from engine.models.gemma.model import DiffusionGemma
from engine.models.kv_cache import EncodedContext

TOKENS = 4 * PIECE
LONG = FillRequest(prefix=" ".join(str(20 + at % 900) for at in range(TOKENS)), suffix="7 8", width=1)


@pytest.fixture
def model() -> DiffusionGemma:
    made = random_model("small", "cpu")
    assert isinstance(made, DiffusionGemma)
    made.info = replace(made.info, sampling=replace(made.info.sampling, max_steps=1))
    return made


class Slow:
    """A clock that knows only how long contexts take: a millisecond a token."""

    def __init__(self, model: DiffusionGemma) -> None:
        self.now = 0.0
        self._model, self._encode = model, model.encode

    def encode(self, ids: Sequence[int]) -> EncodedContext:
        self.now += self._model.unread(ids) / 1000
        return self._encode(ids)


def test_a_long_context_can_be_left_between_pieces_and_gone_on_with(model: DiffusionGemma):
    clock = Slow(model)
    model.encode = clock.encode
    filling = infill(model, LONG, lambda: clock.now)
    assert [next(filling), next(filling)] == [None, None]
    filling.close()
    context = model.prompt(LONG).context
    assert model.unread(context) == TOKENS - 2 * PIECE
    filling = infill(model, LONG, lambda: clock.now)
    assert next(filling) is None
    assert isinstance(next(filling), Step)
    assert model.unread(context) == 0
    assert model.later == ()


def test_quick_pieces_grow(model: DiffusionGemma):
    filling = infill(model, LONG, lambda: 0.0)
    assert next(filling) is None
    assert next(filling) is None
    assert isinstance(next(filling), Step)


def test_what_would_come_too_late_is_read_later_and_the_nearest_part_now(model: DiffusionGemma):
    clock = Slow(model)
    model.encode = clock.encode
    late = structs.replace(LONG, deadline_ms=2.0 * PIECE)
    filling = infill(model, late, lambda: clock.now)
    assert next(filling) is None
    step = next(filling)
    while step is None:
        step = next(filling)
    assert isinstance(step, Step)
    assert clock.now * 1000 < 2 * PIECE
    whole = model.prompt(LONG).context
    (context,) = step.rows.contexts
    assert isinstance(context, EncodedContext)
    assert context.length == PIECE // 2
    assert tuple(context.store.ids[: context.length]) == whole[-context.length :]
    assert model.later == whole
    for left in range(3, 0, -1):
        assert model.unread(whole) == left * PIECE
        model.read_piece()
    assert (model.unread(whole), model.later) == (0, ())
    assert drive(model, infill(model, late, lambda: clock.now)).steps == 1
    assert model.later == ()
