"""What is measured of each family in its own way. Imports no torch; a family's own code is imported when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.errors import BadInput
from engine.core.names import Device

if TYPE_CHECKING:
    from engine.models.base import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomModels:
    """One family's models of random weights."""

    shapes: Sequence[str]
    """Names; N stands for a number of layers."""
    build: Callable[[str, Device, int], Model]
    """(shape, device, seed) -> a model. Raises BadInput and ModelError."""


def random_model(shape: str, device: Device, seed: int = 0) -> Model:
    """Random weights in a shape of `SHAPES`. Raises BadInput for another, ModelError where memory does not allow it."""
    name, _, layers = shape.partition("=")
    for family in RANDOM_MODELS:
        if (f"{name}=N" if layers else shape) in family.shapes:
            return family.build(shape, device, seed)
    raise BadInput(f"There is no shape {shape}: use one of {', '.join(SHAPES)}.")


def _random_gemma(shape: str, device: Device, seed: int) -> Model:
    from engine.bench.gemma.random_model import random_model

    return random_model(shape, device, seed)


def _random_masked(shape: str, device: Device, seed: int) -> Model:
    from engine.bench.masked.random_model import random_model

    return random_model(shape, device, seed)


RANDOM_MODELS = (
    RandomModels(shapes=("released", "26b-layers=N", "small"), build=_random_gemma),
    RandomModels(shapes=("dreamon", "dream-layers=N", "dcoder-layers=N", "masked-small"), build=_random_masked),
)
SHAPES = tuple(shape for family in RANDOM_MODELS for shape in family.shapes)
"""All shapes that `random_model` knows."""
