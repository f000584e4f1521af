"""Models of random weights by the name of a shape. Imports no torch; a family's own code is imported when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.errors import BadInput
from engine.core.names import Device

if TYPE_CHECKING:
    from engine.models.base import Model

_GEMMA_SHAPES = ("released", "26b-layers=N", "small")
_MASKED_SHAPES = ("dreamon", "dream-layers=N", "dcoder-layers=N", "masked-small")
SHAPES = (*_GEMMA_SHAPES, *_MASKED_SHAPES)
"""N stands for a number of layers."""


def random_model(shape: str, device: Device, seed: int = 0) -> Model:
    """Raises BadInput for a shape that is not among `SHAPES`, ModelError where memory does not allow it."""
    name, _, layers = shape.partition("=")
    known = f"{name}=N" if layers else shape
    if known in _GEMMA_SHAPES:
        from engine.bench.random_gemma import random_gemma

        return random_gemma(shape, device, seed)
    if known in _MASKED_SHAPES:
        from engine.bench.random_masked import random_masked

        return random_masked(shape, device, seed)
    raise BadInput(f"There is no shape {shape}: use one of {', '.join(SHAPES)}.")
