"""The family `diffusion_gemma`: Google's released checkpoints and the bundled model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.models.family import Family
from engine.models.gemma import config, gguf_checkpoint

if TYPE_CHECKING:
    from engine.models.base import Model, ModelInfo
    from engine.models.checkpoints.directory import Checkpoint
    from engine.models.checkpoints.placement import Placement
    from engine.models.tokenizer import PromptLayout
    from engine.models.weights import OnPercent


def _open(checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None) -> Model:
    from engine.models.gemma.model import DiffusionGemma

    return DiffusionGemma.open(checkpoint, placement, on_percent)


def _laid_out(checkpoint: Checkpoint, placement: Placement) -> tuple[ModelInfo, PromptLayout]:
    from engine.models.gemma.model import laid_out

    return laid_out(checkpoint, placement)


FAMILY = Family(
    name="diffusion_gemma",
    model_types=config.MODEL_TYPES,
    length=lambda files: "discover",
    layers=lambda files: config.layers(files.config),
    loaded=config.loaded,
    open=_open,
    laid_out=_laid_out,
    architectures=gguf_checkpoint.ARCHITECTURES,
    gguf=gguf_checkpoint.from_gguf,
    small_files=gguf_checkpoint.small_files,
)
