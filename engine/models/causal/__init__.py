"""Pretrained coders that read from left to right, from the files that people have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.models.causal import config
from engine.models.family import Family

if TYPE_CHECKING:
    from engine.models.base import Model
    from engine.models.checkpoints.directory import Checkpoint
    from engine.models.checkpoints.placement import Placement
    from engine.models.weights import OnPercent


def _open(checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None) -> Model:
    from engine.models.causal.model import Causal

    return Causal.open(checkpoint, placement, on_percent)


def _has_canvas(checkpoint: Checkpoint) -> bool:
    from engine.models.causal.pairs import fits

    return fits(checkpoint.path)


FAMILY = Family(
    name="causal",
    model_types=config.MODEL_TYPES,
    length=config.length,
    layers=config.layers,
    loaded=config.loaded,
    open=_open,
    tunes=False,
    int8=True,
    has_canvas=_has_canvas,
    architectures=config.MODEL_TYPES,
    gguf=config.from_gguf,
)
