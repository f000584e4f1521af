"""Which parts of a fill take part. Serving uses all; an evaluation leaves one out to see what it is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All of them, unless told otherwise."""

    repair: bool = True
    """Validate answers, cut and mend them; else they are offered as the canvas has them, unchecked."""
    renoise: bool = True
    """Denoise again what does not parse; else it is only cut, or not offered."""
    ranking: bool = True
    """Order answers by how well the model says they read; else by the canvas's own confidence."""
