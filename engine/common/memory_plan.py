"""How the memory of a device is shared out, before anything is read. It travels with an engine's status."""

from __future__ import annotations

from engine.common.sizes import binary_bytes
from engine.common.wire import Wire


class MemoryPlan(Wire, frozen=True, kw_only=True):
    """Bytes."""

    weights: int
    contexts: int
    """Keys and values of one context as long as is read; the cache of several takes what is left."""
    canvases: int
    """Keys and values of as many tokens as a pass computes."""
    workspace: int
    """What the layers, and the sampler behind them, hold for a moment."""
    library: int
    """What a GPU's own libraries keep."""

    @property
    def beside(self) -> int:
        """All but the weights."""
        return self.contexts + self.canvases + self.workspace + self.library

    @property
    def total(self) -> int:
        return self.weights + self.beside

    def summary(self) -> str:
        """The total and its parts, as a part of a sentence."""
        names = {"weights": self.weights, "contexts": self.contexts, "canvases": self.canvases}
        names |= {"workspace": self.workspace, "CUDA's own": self.library}
        parts = [f"{name} {binary_bytes(nbytes)}" for name, nbytes in names.items() if nbytes]
        return f"{binary_bytes(self.total)} planned ({', '.join(parts)})"
