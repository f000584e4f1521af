"""The family `masked`: coders with mask tokens and full attention in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.models.family import Family
from engine.models.masked import description

if TYPE_CHECKING:
    from engine.models.base import Model
    from engine.models.checkpoints.directory import Checkpoint
    from engine.models.checkpoints.placement import Placement
    from engine.models.weights import OnPercent


def _open(checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None) -> Model:
    from engine.models.masked.model import Masked

    return Masked.open(checkpoint, placement, on_percent)


FAMILY = Family(
    name="masked",
    model_types=description.MODEL_TYPES,
    length=lambda files: description.described(files).length,
    layers=lambda files: description.described(files).architecture.layers,
    loaded=description.loaded,
    open=_open,
    runs=description.is_masked,
)
