"""One thing to do for a client, from its arrival to its one reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.ipc.messages import EngineMessage, Fill, Priority, Warm

if TYPE_CHECKING:
    # Only for the checker: the process answers clients before torch is imported.
    from engine.decoding.executor import Filling, Step


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A fill, or the wish to have the weights loaded. `filling` and `step` belong to the model thread."""

    client: int
    order: Fill | Warm
    deliver: Callable[[EngineMessage], None]
    """May be called on any thread."""
    arrived: float
    """Seconds, monotonic."""
    touched: float
    """When it last got a turn, or arrived."""
    rows: int = 0
    """Canvases in its next forward pass, or the most there may be."""
    started: bool = False
    ended: bool = False
    """Its reply is out; nobody wants its result."""
    filling: Filling | None = None
    step: Step | None = None

    @property
    def id(self) -> int:
        """The client's number for it."""
        return self.order.id

    @property
    def document(self) -> str:
        """Newer work for the same one takes its place; empty: none does."""
        return self.order.document if isinstance(self.order, Fill) else ""

    @property
    def priority(self) -> Priority:
        """Loading is waited for by somebody who is about to ask."""
        return self.order.priority if isinstance(self.order, Fill) else "interactive"
