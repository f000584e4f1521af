"""Run fills to their end: collect the forward passes that several fills wait for and do them as one.

A fill is a generator. It yields a `Step` (canvases that need a forward pass) and receives the logits, a `SyntaxCheck`
(a question about a document) and receives the reply, a `Draft` (its answer so far) or None, both just points to pause
at; and it returns its answer. The caller decides when it goes on, with which other fills, and whether at all: not
advancing it is a pause, closing it is a cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from engine.common.request import Candidate, Draft, Filled, Timings
from engine.models.base import Model, Rows
from engine.models.logits import Logits
from engine.models.products import threads_for
from engine.syntax.questions import SyntaxCheck

if TYPE_CHECKING:
    from engine.syntax.checks import Checks


@dataclass(slots=True, kw_only=True)
class Step:
    """A forward pass that a fill waits for, and the answer it would give now."""

    rows: Rows
    draft: Callable[[], Draft]
    pending: Future[Any] | None = None
    """Where the model does this and all later steps itself: no logits are sent, but the work must wait for this."""


T = TypeVar("T")
Work = Generator[Step | SyntaxCheck | Draft | None, Any, T]
"""Receives Logits for each Step that is not pending, a Reply or None for each SyntaxCheck; other values need
nothing."""
Filling = Work[Filled]


@torch.inference_mode()
def drive(model: Model, filling: Work[T], on_draft: Callable[[Draft], None] | None = None) -> T:
    """Run one fill to its end, in this process alone, telling `on_draft` the canvas after each step."""
    with threads_for(model.info.parameters, model.info.device):
        return _driven(model, filling, on_draft)


def _driven(model: Model, filling: Work[T], on_draft: Callable[[Draft], None] | None) -> T:
    checks: Checks | None = None
    try:
        wanted = next(filling)
        while True:
            if wanted is None or isinstance(wanted, Draft):
                if wanted is not None and on_draft:
                    on_draft(wanted)
                wanted = next(filling)
                continue
            if isinstance(wanted, SyntaxCheck):
                if checks is None:
                    # Not before a document is looked at: an engine that has a process for that never does.
                    from engine.syntax.checks import Checks

                    checks = Checks()
                wanted = filling.send(checks.answer(wanted.question, wanted.budget_ms))
                continue
            if on_draft:
                on_draft(wanted.draft())
            if wanted.pending is not None:
                wait([wanted.pending])
                wanted = next(filling)
                continue
            wanted = filling.send(model.step(wanted.rows))
    except StopIteration as end:
        return end.value


def filled_by(
    model: Model, candidates: Sequence[Candidate], *, forwards: int, ms: Timings, width: int | None = None, **more: Any
) -> Filled:
    """A model's answer. Without a width it is the first candidate's, and each pass is a step; `more`: other fields of
    `Filled`."""
    first = candidates[0].tokens if candidates else 0
    told = {"width": first if width is None else width, "steps": forwards, **more}
    name, device, adapter = model.info.name, model.info.device, model.info.adapter
    return Filled(
        model=name, device=device, adapter=adapter, candidates=tuple(candidates), forwards=forwards, ms=ms, **told
    )


def merged(steps: Sequence[Step]) -> Rows:
    """One ragged batch, as wide as the widest, for the forward passes of several fills."""
    batches = [step.rows for step in steps]
    if len(batches) == 1:
        return batches[0]
    width = max(rows.canvas.shape[1] for rows in batches)

    def widened(tensor: Tensor) -> Tensor:
        return torch.nn.functional.pad(tensor, (0, width - tensor.shape[1]))

    return Rows(
        contexts=[context for rows in batches for context in rows.contexts],
        canvas=torch.cat([widened(rows.canvas) for rows in batches]),
        lengths=[length for rows in batches for length in rows.lengths],
        open=torch.cat([widened(rows.open) for rows in batches]),
        self_conditioning=_merged_conditioning(batches),
        conditioned=[flag for rows in batches for flag in rows.conditioned],
    )


def parted(logits: Logits, steps: Sequence[Step]) -> list[Logits]:
    """The logits of every step from those of their batch."""
    return list(logits.split([int(step.rows.open.sum()) for step in steps])) if len(steps) > 1 else [logits]


def _merged_conditioning(batches: Sequence[Rows]) -> Tensor | None:
    """Zeros stand in for what a first step does not have; `Rows.conditioned` tells the model to ignore them."""
    given = [rows.self_conditioning for rows in batches]
    some = next((signal for signal in given if signal is not None), None)
    if some is None:
        return None
    return torch.cat(
        [
            signal if signal is not None else some.new_zeros(int(rows.open.sum()), some.shape[1])
            for rows, signal in zip(batches, given, strict=True)
        ]
    )
