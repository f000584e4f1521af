"""The planned memory of a device; part of an engine's status."""

from __future__ import annotations

from engine.common.sizes import binary_bytes
from engine.common.wire import Wire


class MemoryPlan(Wire, frozen=True, kw_only=True):
    """Bytes."""

    weights: int
    contexts: int
    """Keys and values of one context of the planned length; caching more contexts takes what is left."""
    canvases: int
    """Keys and values of the tokens of one pass."""
    workspace: int
    """Temporary memory of the layers and the sampler."""
    library: int
    """Memory kept by a GPU's libraries."""

    @property
    def beside(self) -> int:
        """Everything but the weights."""
        return self.contexts + self.canvases + self.workspace + self.library

    @property
    def total(self) -> int:
        return self.weights + self.beside

    def summary(self) -> str:
        """The total and its parts, as a clause."""
        names = {"weights": self.weights, "contexts": self.contexts, "canvases": self.canvases}
        names |= {"workspace": self.workspace, "CUDA's own": self.library}
        parts = [f"{name} {binary_bytes(nbytes)}" for name, nbytes in names.items() if nbytes]
        return f"{binary_bytes(self.total)} planned ({', '.join(parts)})"
