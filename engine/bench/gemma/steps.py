"""The two ways that a step can go: everything computed, or what is in question alone."""

from __future__ import annotations

from torch import Tensor

from engine.bench.abilities import StepKind, forgetful
from engine.bench.gemma.products import products_of
from engine.models.base import Model, Rows
from engine.models.gemma.model import DiffusionGemma


def step_kinds(model: Model, rows: Rows) -> list[StepKind]:
    """In full; and with remembered surroundings, where that is a gain and possible for all rows."""
    assert isinstance(model, DiffusionGemma)

    def in_full() -> Tensor:
        with forgetful(model):
            return model.step(rows)

    def renew() -> None:
        for context in rows.contexts:
            model.cache.renew(context)

    everything = model.parts(rows)
    full = StepKind(name="step in full", run=in_full, products=products_of(model.network, rows, everything))
    model.step(rows)  # so that there is something to remember
    left = model.parts(rows)
    model.cache.plan(left)
    if any(len(part.places) == len(part.ids) for part in left):
        return [full]
    reused = StepKind(
        name="step that remembers its surroundings",
        run=lambda: model.step(rows),
        products=products_of(model.network, rows, left),
        before=renew,
    )
    return [full, reused]
