"""Run fills to their end: collect the forward passes that several fills wait for and do them as one.

A fill is a generator: it yields a `Step` (the canvases it wants a forward pass over), is sent the logits, and returns its
answer. Whoever drives it decides when, together with whom, and whether it goes on at all: not advancing it is a pause,
closing it is a cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models.base import Model, Rows
from engine.request import Draft, Filled


@dataclass(slots=True, kw_only=True)
class Step:
    """A forward pass that a fill waits for, and the answer it would give now."""

    rows: Rows
    draft: Callable[[], Draft]


Filling = Generator[Step, Tensor, Filled]


def drive(model: Model, filling: Filling, on_draft: Callable[[Draft], None] | None = None) -> Filled:
    """Run one fill to its end, telling `on_draft` the canvas after each step."""
    try:
        step = next(filling)
        while True:
            if on_draft:
                on_draft(step.draft())
            step = filling.send(model.step(step.rows))
    except StopIteration as end:
        return end.value


def forward_together(model: Model, steps: Sequence[Step]) -> list[Tensor]:
    """The logits of every step, [B_i, L_i, V] each, from one ragged forward pass."""
    if len(steps) == 1:
        return [model.step(steps[0].rows)]
    logits = model.step(merge([step.rows for step in steps]))
    parts = logits.split([step.rows.canvas.shape[0] for step in steps])
    return [part[:, : step.rows.canvas.shape[1]] for part, step in zip(parts, steps, strict=True)]


def merge(batches: Sequence[Rows]) -> Rows:
    """Several ragged batches as one, as wide as the widest. A first step beside later ones is conditioned on zeros
    only where it has no logits of its own: see `Rows.conditioned`."""
    width = max(rows.canvas.shape[1] for rows in batches)

    def widen(tensor: Tensor) -> Tensor:
        missing = width - tensor.shape[1]
        return torch.nn.functional.pad(tensor, (0, 0) * (tensor.ndim - 2) + (0, missing))

    given = [rows.self_conditioning for rows in batches]
    vocab = next((logits.shape[2] for logits in given if logits is not None), 0)
    self_conditioning = None
    if vocab:
        self_conditioning = torch.cat(
            [
                widen(logits)
                if logits is not None
                else rows.canvas.new_zeros(rows.canvas.shape[0], width, vocab, dtype=torch.float32)
                for rows, logits in zip(batches, given, strict=True)
            ]
        )
    return Rows(
        contexts=[context for rows in batches for context in rows.contexts],
        canvas=torch.cat([widen(rows.canvas) for rows in batches]),
        lengths=[length for rows in batches for length in rows.lengths],
        self_conditioning=self_conditioning,
        conditioned=[flag for rows in batches for flag in rows.conditioned],
    )
