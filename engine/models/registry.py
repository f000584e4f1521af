"""The list of families, and the family that runs a config.json or a GGUF. Imports no torch; a family's own code is
imported when a model of it is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.common.errors import ModelError
from engine.models.causal import config as causal
from engine.models.checkpoints.directory import Checkpoint, Files, LengthStrategy, TensorHeader
from engine.models.checkpoints.gguf import GgufFile
from engine.models.gemma import config as gemma
from engine.models.gemma import gguf_checkpoint as gemma_gguf
from engine.models.masked import description as masked

if TYPE_CHECKING:
    from engine.models.base import Model, ModelInfo
    from engine.models.checkpoints.placement import Placement
    from engine.models.tokenizer import PromptLayout
    from engine.models.weights import OnPercent


class UnknownFamily(ModelError):
    """A model of a type that no family runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One way to run a model."""

    name: str
    model_types: tuple[str, ...]
    """Values of `model_type` in config.json."""
    length: Callable[[Files], LengthStrategy]
    """The length strategy of a checkpoint. Raises ModelError for one that the family can't run."""
    layers: Callable[[Files], int]
    loaded: Callable[[list[TensorHeader]], tuple[TensorHeader, ...]]
    """The tensors that are loaded, those of layer N named `....layers.N....`."""
    open: Callable[[Checkpoint, Placement, OnPercent | None], Model]
    """Loads weights and tokenizer, reporting progress. Raises ModelError."""
    laid_out: Callable[[Checkpoint, Placement], tuple[ModelInfo, PromptLayout]] | None = None
    """Opens all but the weights, for models that a server can run; None: no server can."""
    runs: Callable[[Files], bool] = lambda files: True
    """Whether a checkpoint of one of its types belongs to the family, where several share a type."""
    architectures: tuple[str, ...] = ()
    """Names of architectures in GGUF."""
    gguf: Callable[[GgufFile], tuple[dict[str, Any], list[TensorHeader]]] | None = None
    """A GGUF as a config.json, with its tensors under the names of the published class."""
    small_files: Callable[[GgufFile], Mapping[str, dict[str, Any]]] = lambda file: {}
    """Other small files that a GGUF stands for, by name."""


def family_of_type(model_type: object, name: str) -> Family:
    """The family that runs models of this type of config.json. Raises UnknownFamily for a type that none runs."""
    for family in FAMILIES:
        if model_type in family.model_types:
            return family
    runs = ", ".join(each for family in FAMILIES for each in family.model_types)
    raise UnknownFamily(f"{name} is a model of type {model_type!r}: dg-lsp runs {runs}.")


def family_of(files: Files) -> Family:
    """The family that runs a model directory. Raises UnknownFamily for a type that none runs."""
    model_type = files.config.get("model_type")
    own = (family for family in FAMILIES if model_type in family.model_types and family.runs(files))
    return next(own, None) or family_of_type(model_type, files.name)


def family_of_gguf(file: GgufFile, name: str) -> Family:
    """The family that runs a GGUF. Raises UnknownFamily for an architecture that none runs."""
    for family in FAMILIES:
        if file.architecture in family.architectures:
            return family
    runs = ", ".join(each for family in FAMILIES for each in family.architectures)
    raise UnknownFamily(f"{name} is of the architecture {file.architecture[:80]!r}: dg-lsp runs {runs}.")


def family_named(name: str) -> Family:
    """The family of that name, as `Checkpoint.family` holds it."""
    return next(family for family in FAMILIES if family.name == name)


def _open_gemma(checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None) -> Model:
    from engine.models.gemma.model import DiffusionGemma

    return DiffusionGemma.open(checkpoint, placement, on_percent)


def _lay_out_gemma(checkpoint: Checkpoint, placement: Placement) -> tuple[ModelInfo, PromptLayout]:
    from engine.models.gemma.model import laid_out

    return laid_out(checkpoint, placement)


def _open_masked(checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None) -> Model:
    from engine.models.masked.model import Masked

    return Masked.open(checkpoint, placement, on_percent)


def _open_causal(checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None) -> Model:
    from engine.models.causal.model import Causal

    return Causal.open(checkpoint, placement, on_percent)


FAMILIES = (
    Family(
        name="diffusion_gemma",
        model_types=gemma.MODEL_TYPES,
        length=lambda files: "discover",
        layers=lambda files: gemma.layers(files.config),
        loaded=gemma.loaded,
        open=_open_gemma,
        laid_out=_lay_out_gemma,
        architectures=gemma_gguf.ARCHITECTURES,
        gguf=gemma_gguf.from_gguf,
        small_files=gemma_gguf.small_files,
    ),
    Family(
        name="masked",
        model_types=masked.MODEL_TYPES,
        length=lambda files: masked.described(files).length,
        layers=lambda files: masked.described(files).architecture.layers,
        loaded=masked.loaded,
        open=_open_masked,
        runs=masked.is_masked,
    ),
    Family(
        name="causal",
        model_types=causal.MODEL_TYPES,
        length=causal.length,
        layers=causal.layers,
        loaded=causal.loaded,
        open=_open_causal,
        architectures=causal.MODEL_TYPES,
        gguf=causal.from_gguf,
    ),
)
