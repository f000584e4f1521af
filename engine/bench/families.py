"""What is measured of each family in its own way. Imports no torch; a family's own code is imported when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.errors import BadInput
from engine.core.names import Device

if TYPE_CHECKING:
    from engine.bench.abilities import StepKind
    from engine.models.base import Model, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What is one family's own."""

    name: str
    shapes: Sequence[str]
    """Names of shapes for random weights; N stands for a number of layers."""
    random: Callable[[str, Device, int], Model]
    """(shape, device, seed) -> a model of random weights. Raises BadInput and ModelError."""
    step_kinds: Callable[[Model, Rows], list[StepKind]]


def random_model(shape: str, device: Device, seed: int = 0) -> Model:
    """Random weights in a shape of `SHAPES`. Raises BadInput for another, ModelError where memory does not allow it."""
    name, _, layers = shape.partition("=")
    for family in FAMILIES:
        if (f"{name}=N" if layers else shape) in family.shapes:
            return family.random(shape, device, seed)
    raise BadInput(f"There is no shape {shape}: use one of {', '.join(SHAPES)}.")


def step_kinds(model: Model, rows: Rows) -> list[StepKind]:
    """The ways that a step over `rows` can go, that which computes most first."""
    return next(family for family in FAMILIES if family.name == model.info.family).step_kinds(model, rows)


def _random_gemma(shape: str, device: Device, seed: int) -> Model:
    from engine.bench.gemma.random_model import random_model

    return random_model(shape, device, seed)


def _random_masked(shape: str, device: Device, seed: int) -> Model:
    from engine.bench.masked.random_model import random_model

    return random_model(shape, device, seed)


def _gemma_steps(model: Model, rows: Rows) -> list[StepKind]:
    from engine.bench.gemma.steps import step_kinds

    return step_kinds(model, rows)


def _masked_steps(model: Model, rows: Rows) -> list[StepKind]:
    from engine.bench.masked.steps import step_kinds

    return step_kinds(model, rows)


FAMILIES = (
    Measuring(
        name="diffusion_gemma",
        shapes=("released", "26b-layers=N", "small"),
        random=_random_gemma,
        step_kinds=_gemma_steps,
    ),
    Measuring(
        name="masked",
        shapes=("dreamon", "dream-layers=N", "dcoder-layers=N", "masked-small"),
        random=_random_masked,
        step_kinds=_masked_steps,
    ),
)
SHAPES = tuple(shape for family in FAMILIES for shape in family.shapes)
"""All shapes that `random_model` knows."""
