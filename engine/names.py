"""What a model's name may be, told without looking into the model."""

from __future__ import annotations

BUNDLED = "bundled"
ORACLE = "oracle:"
"""Begins the name of a test model, which needs no weights: see engine.models.oracle."""
