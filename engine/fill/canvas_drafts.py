"""Drafts for a model that checks them: the canvases of a small diffusion model over the same gap."""

from __future__ import annotations

from collections.abc import Callable, Generator

from msgspec.structs import replace

from engine.common.request import Filled, FillRequest
from engine.fill.executor import Filling, Step, Work
from engine.models.base import Model
from engine.syntax.questions import Check

COUNT = 3
"""Candidates: what they agree on costs a row once."""
MAX_TOKENS = 32
"""Of the small model: what is longer is seldom right to its end."""


def canvas_drafts(
    drafter: Model, request: FillRequest, fill: Callable[[Model, FillRequest], Filling]
) -> Work[list[str]]:
    """Fill the gap by the small model and return its texts, best first. `fill` does the filling."""
    drafting = replace(
        request, n=COUNT, max_tokens=min(MAX_TOKENS, request.max_tokens), workspace_matches=(), deadline_ms=None
    )
    filled = yield from _stepped(drafter, fill(drafter, drafting))
    return [each.text for each in filled.candidates]


def _stepped(drafter: Model, filling: Filling) -> Generator[None, None, Filled]:
    """Run it to its end, its own forward passes between places to be held up at. It asks about no document."""
    try:
        wanted = next(filling)
        while True:
            assert not isinstance(wanted, Check)
            yield
            wanted = filling.send(drafter.step(wanted.rows)) if isinstance(wanted, Step) else next(filling)
    except StopIteration as end:
        return end.value
