"""What of a folder's adapter is in use. It travels with an engine's status."""

from __future__ import annotations

from engine.common.wire import Wire


class AdapterUse(Wire, frozen=True, kw_only=True):
    """Of an adapter that a request came for."""

    folder: str
    """What it has learnt."""
    trouble: str = ""
    """Why the model is used without it, in a sentence; empty: it is in use."""
