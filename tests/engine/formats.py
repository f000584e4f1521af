"""Formats for a test, whatever the processor has and the environment says."""

import pytest

from engine.models import formats
from engine.models.formats import Formats


def choose(patch: pytest.MonkeyPatch, **which: int) -> None:
    """None named: float32, as torch multiplies it."""
    patch.setattr(formats, "_chosen", lambda overruled: Formats(**which))
