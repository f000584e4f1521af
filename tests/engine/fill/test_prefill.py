"""Long contexts are encoded piece by piece, and no more of them than a deadline leaves time for."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from torch import Tensor

from engine.common.request import FillRequest
from engine.fill.deadline import Deadline
from engine.fill.executor import Step, drive
from engine.fill.pipeline import infill
from engine.fill.prefill import read
from engine.lab.bench.families import random_model
from engine.models.base import PIECE, DraftTree
from engine.models.causal.text import CausalContext, CausalText
from engine.models.gemma.model import DiffusionGemma
from engine.models.kv_cache import EncodedContext
from tests.engine.coder import open_model, write_coder

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


def filled(model: DiffusionGemma, request: FillRequest, clock: Slow) -> EncodedContext:
    """The context that a request was filled with."""
    for step in infill(model, request, lambda: clock.now):
        if step is not None:
            assert isinstance(step, Step)
            (context,) = step.rows.contexts
            assert isinstance(context, EncodedContext)
            return context
    raise AssertionError("no step")


def elsewhere(prefix: str, deadline_ms: float) -> FillRequest:
    numbers = " ".join(str(400 + at * 7 % 500) for at in range(TOKENS))
    return structs.replace(LONG, prefix=numbers + prefix, deadline_ms=deadline_ms)


def test_a_machine_whose_speed_is_known_reads_at_once_what_it_can(model: DiffusionGemma):
    clock = Slow(model)
    model.encode = clock.encode
    filled(model, structs.replace(LONG, deadline_ms=2.0 * PIECE), clock)
    assert model.token_ms == 1
    request, began = elsewhere("", 1200.0), clock.now
    whole = model.prompt(request).context
    context = filled(model, request, clock)
    assert PIECE < context.length <= 0.5 * 1200
    assert tuple(context.store.ids[: context.length]) == whole[-context.length :]
    assert clock.now - began == pytest.approx(context.length / 1000)
    assert model.unread(whole) == len(whole)
    assert model.later == whole


def test_a_context_that_was_cut_grows_by_what_is_typed(tmp_path: Path):
    """A coder's, whose window moves in leaps: whatever the deadline leaves at each key, what was read stays."""
    model, now = open_model(write_coder(tmp_path / "coder.gguf")), 0.0
    contexts: list[tuple[int, ...]] = []
    spent: list[float] = []
    lines = "".join(f"x{at} = f({at})\n" for at in range(500))
    encode = model.encode

    def slow(ids: Sequence[int]) -> CausalContext:
        nonlocal now
        now += model.unread(ids) / 1000
        return encode(ids)

    model.encode = slow
    for typed, deadline_ms in (("", 1200), ("y", 1200), ("y = ", 900), ("y = x1", 1300), ("y = x1 + ", 1000)):
        began, request = now, FillRequest(prefix=lines + typed, suffix="\n" * 9)
        reading = read(model, request, Deadline(deadline_ms, now, lambda: now), lambda: now)
        prompt = None
        while prompt is None:
            try:
                next(reading)
            except StopIteration as stop:
                prompt = stop.value
        model.check(model.begin(model.encode(prompt.context)), DraftTree(ids=(), parents=()))
        contexts.append(prompt.context)
        spent.append(now - began)
    assert 200 < len(contexts[0]) <= 600
    assert all(len(context) >= len(contexts[0]) and context[:200] == contexts[0][:200] for context in contexts[1:])
    assert max(spent[1:]) < 0.05


def test_the_pass_that_reads_a_context_does_not_tell_how_long_others_take(tmp_path: Path):
    """With 200 ms of 300 for the context and 10 a pass, passes are done until the last 10."""
    model, now = open_model(write_coder(tmp_path / "coder.gguf")), 0.0
    check = model.check

    def slow(text: CausalText, tree: DraftTree, canvas: int | None = None) -> Tensor:
        nonlocal now
        now += 0.2 if text.unread > 100 else 0.01
        return check(text, tree, canvas)

    model.check = slow
    request = FillRequest(prefix="x = f(1)\n" * 30, suffix="\n", deadline_ms=300.0)
    filled = drive(model, infill(model, request, lambda: now))
    assert filled.forwards == 10
    assert now == pytest.approx(0.29)


def test_a_machine_that_was_busy_is_measured_again_while_nothing_else_is_to_do(model: DiffusionGemma):
    clock = Slow(model)
    model.encode, model.clock = clock.encode, lambda: clock.now
    model.token_ms = 1000.0
    assert filled(model, elsewhere("", 1200.0), clock).length == PIECE // 2
    model.read_piece()
    assert model.token_ms == pytest.approx(1)
    model.forget()
    assert filled(model, elsewhere("", 1200.0), clock).length == 600
