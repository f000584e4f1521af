"""What a model's name may be, told without looking into the model."""

from __future__ import annotations

from pathlib import Path

BUNDLED = "bundled"
ORACLE = "oracle:"
"""Begins the name of a test model, which needs no weights: see engine.models.oracle.model."""


def rooted(name: str, folder: Path) -> str:
    """A name that means the same wherever a process stands: the path of what it names in `folder`, if that is there."""
    prefix, path = (ORACLE, name.removeprefix(ORACLE)) if name.startswith(ORACLE) else ("", name)
    there = folder / path
    is_relative = path not in ("", BUNDLED) and not Path(path).is_absolute()
    return f"{prefix}{there}" if is_relative and (there.is_file() if prefix else there.is_dir()) else name
