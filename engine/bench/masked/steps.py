"""The two ways that a step can go: everything computed, or the gaps alone with what is remembered around them."""

from __future__ import annotations

from torch import Tensor

from engine.bench.abilities import StepKind, forgetful
from engine.bench.masked.products import products_of
from engine.models.base import Model, Rows
from engine.models.masked.memory import MaskedContext, worth_keeping
from engine.models.masked.memory import whole as in_whole
from engine.models.masked.model import Masked


def step_kinds(model: Model, rows: Rows) -> list[StepKind]:
    """In full; and with remembered surroundings, where that is a gain and possible for all rows."""
    assert isinstance(model, Masked)
    lines = model.lines(rows)

    def in_full() -> Tensor:
        with forgetful(model):
            return model.step(rows)

    full = StepKind(
        name="step in full", run=in_full, products=products_of(model.network, [in_whole(line) for line in lines])
    )
    if not model.remembers or not all(map(worth_keeping, lines)):
        return [full]
    model.step(rows)  # so that there is something to remember
    contexts = [context for context in rows.contexts if isinstance(context, MaskedContext)]
    recalled = [context.recall(line, stale=True) for context, line in zip(contexts, lines, strict=True)]
    windows = [window for window in recalled if window is not None]
    if len(windows) < len(lines):
        return [full]

    def fresh() -> None:
        for context in contexts:
            for held in context.passes:
                held.uses = 1

    reused = StepKind(
        name="step that remembers its surroundings",
        run=lambda: model.step(rows),
        products=products_of(model.network, windows),
        before=fresh,
    )
    return [full, reused]
