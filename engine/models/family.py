"""A family of models: what its folder exports as FAMILY. Imports no torch; a family's own code is imported when a model
of it is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.models.checkpoints.directory import Checkpoint, Files, LengthStrategy, TensorHeader
from engine.models.checkpoints.gguf import GgufFile

if TYPE_CHECKING:
    from engine.models.base import Model, ModelInfo
    from engine.models.checkpoints.placement import Placement
    from engine.models.tokenizer import PromptLayout
    from engine.models.weights import OnPercent


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
    tunes: bool = True
    """Whether its models can be tuned."""
    int8: bool = False
    """Whether a processor that multiplies int8 runs them in it."""
    has_canvas: Callable[[Checkpoint], bool] = lambda checkpoint: False
    """Whether a model that fills from left to right has a canvas as well."""
    runs: Callable[[Files], bool] = lambda files: True
    """Whether a checkpoint of one of its types belongs to the family, where several share a type."""
    architectures: tuple[str, ...] = ()
    """Names of architectures in GGUF."""
    gguf: Callable[[GgufFile], tuple[dict[str, Any], list[TensorHeader]]] | None = None
    """A GGUF as a config.json, with its tensors under the names of the published class."""
    small_files: Callable[[GgufFile], Mapping[str, dict[str, Any]]] = lambda file: {}
    """Other small files that a GGUF stands for, by name."""
