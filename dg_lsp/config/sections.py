"""Where our settings stand among those that an editor sends. Needed before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

SECTIONS = ("dg-lsp", "dg")
"""The names under which editors may keep them among those of others."""


def section(given: object) -> object:
    """Ours, where an editor sends them under a name or alone."""
    table = cast(Mapping[str, object], given) if isinstance(given, Mapping) else {}
    return next((table[name] for name in SECTIONS if name in table), given)
