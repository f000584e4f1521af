"""The families of models: which one a config.json belongs to. Imports no torch; a family's own code is imported when a
model of it is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import BadInput, ModelError
from engine.core.names import Device
from engine.models.gemma import description as gemma_family
from engine.models.masked import description as masked_family

if TYPE_CHECKING:
    from engine.checkpoints.directory import Checkpoint, TensorHeader
    from engine.checkpoints.placement import Placement
    from engine.models.base import LengthStrategy, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The small files of a model directory, before anything is loaded."""

    path: Path
    name: str
    """As a person would name the model."""
    config: dict[str, Any]
    """config.json"""
    told: dict[str, Any]
    """What its authors tell dg-lsp beyond that; empty for released checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One way to run a model."""

    name: str
    model_types: tuple[str, ...]
    """Of config.json."""
    length: Callable[[Files], LengthStrategy]
    """How a checkpoint finds the width of a gap. Raises ModelError for one that the family can't run."""
    layers: Callable[[Files], int]
    loaded: Callable[[list[TensorHeader]], tuple[TensorHeader, ...]]
    """The tensors that are loaded, those of layer N named `....layers.N....`."""
    open: Callable[[Checkpoint, Placement], Model]
    """Load weights and tokenizer. Raises ModelError."""
    shapes: tuple[str, ...]
    """Names of shapes for random weights; N stands for a number of layers."""
    random: Callable[[str, Device, int], Model]
    """(shape, device, seed) -> a model of random weights. Raises BadInput and ModelError."""


FAMILIES = (
    Family(
        name="diffusion_gemma",
        model_types=gemma_family.MODEL_TYPES,
        length=lambda files: "discover",
        layers=lambda files: gemma_family.layers(files.config),
        loaded=gemma_family.loaded,
        open=gemma_family.open_model,
        shapes=gemma_family.SHAPES,
        random=gemma_family.random_model,
    ),
    Family(
        name="masked",
        model_types=masked_family.MODEL_TYPES,
        length=lambda files: masked_family.described(files).length,
        layers=lambda files: masked_family.described(files).architecture.layers,
        loaded=masked_family.loaded,
        open=masked_family.open_model,
        shapes=masked_family.SHAPES,
        random=masked_family.random_model,
    ),
)


SHAPES = tuple(shape for family in FAMILIES for shape in family.shapes)
"""All shapes that `random_model` knows."""


def family_of_type(model_type: object, name: str) -> Family:
    """The family that runs models of this type of config.json. Raises ModelError for a type that none runs."""
    for family in FAMILIES:
        if model_type in family.model_types:
            return family
    runs = ", ".join(each for family in FAMILIES for each in family.model_types)
    raise ModelError(f"{name} is a model of type {model_type!r}: dg-lsp runs {runs}.")


def family_named(name: str) -> Family:
    """The family of that name, as `Checkpoint.family` holds it."""
    return next(family for family in FAMILIES if family.name == name)


def random_model(shape: str, device: Device, seed: int = 0) -> Model:
    """Random weights in a shape of `SHAPES`. Raises BadInput for another, ModelError where memory does not allow it."""
    name, _, layers = shape.partition("=")
    for family in FAMILIES:
        if (f"{name}=N" if layers else shape) in family.shapes:
            return family.random(shape, device, seed)
    raise BadInput(f"There is no shape {shape}: use one of {', '.join(SHAPES)}.")
