"""Formats for a test, whatever the processor has and the environment says."""

import pytest

from engine.models import formats
from engine.models.formats import Formats

NEEDS_INT8 = pytest.mark.skipif(
    not formats.formats_of(formats._this_processor()).int8, reason="needs a processor with AVX2"
)


def choose(patch: pytest.MonkeyPatch, **which: int) -> None:
    """None named: float32, as torch multiplies it. Codes in 8 bits are as large as the processor at hand adds up."""
    if which.get("int8"):
        which.setdefault("int8_largest", formats.formats_of(formats._this_processor()).int8_largest)
    patch.setattr(formats, "_chosen", lambda overruled: Formats(**which))
