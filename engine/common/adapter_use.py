"""Which adapters are in use; part of an engine's status."""

from __future__ import annotations

from engine.common.wire import Wire


class AdapterUse(Wire, frozen=True, kw_only=True):
    """An adapter that a request came for."""

    folder: str
    """The folder that it was trained on."""
    trouble: str = ""
    """A sentence: why it is not used; empty: it is in use."""
