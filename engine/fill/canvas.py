"""A batch of canvases while they are denoised: what is on them, what is fixed, what the model would answer now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.fill.distributions import Signal
from engine.models.base import Context, Noise
from engine.models.logits import Head

SURE = 8.0
"""Logit of a guessed token above all others: likely, not certain."""


@dataclass(slots=True, kw_only=True)
class Canvas:
    """B canvases, ragged, as wide as the widest. All tensors are [B, L]."""

    contexts: Sequence[Context]
    lengths: Sequence[int]
    ids: Tensor
    """What the model sees next: accepted and pinned tokens, noise elsewhere."""
    pinned: Tensor
    """Fixed from the start, as is everything beyond a canvas's length."""
    known: Tensor
    """Pinned, or accepted for good."""
    accepted: Tensor
    """Accepted in the last step."""
    best: Tensor
    """The answer as it stands: accepted tokens, the model's first choice elsewhere."""
    confidence: Tensor
    """Probability of `best` when it was last looked at; 1 where pinned."""
    signal: Signal | None = None
    """The model's predictions for the open positions in the last step, or a guess before the first."""
    log_queried: Tensor | None = None
    """Log-probabilities [B, L, S] of the tokens that the policies query, at positions that were open in the last
    step."""
    open: Tensor
    """Positions whose logits the next step wants."""
    step: int = 0
    """Steps done."""
    choices: Sequence[Mapping[int, float]] = ()
    """The likeliest tokens of each position that was open, with log-probabilities, row by row, where a server denoised
    the canvas and was requested to send them."""

    def accepted_token(self, row: int, position: int) -> int | None:
        """The token that was accepted for good there; None for a pinned, an open or no position."""
        there = position < self.lengths[row] and bool(self.known[row, position] & ~self.pinned[row, position])
        return int(self.ids[row, position]) if there else None

    def row(self, index: int) -> list[int]:
        """`best` of one canvas."""
        return self.best[index, : self.lengths[index]].tolist()


def new_canvas(
    contexts: Sequence[Context], rows: Sequence[Sequence[int | None]], noise: Noise, generator: torch.Generator
) -> Canvas:
    """Canvases whose known tokens are pinned; None is an unknown position and starts as noise."""
    width = max(map(len, rows))
    device = generator.device
    ids = torch.tensor(
        [[-1 if t is None else t for t in row] + [0] * (width - len(row)) for row in rows],
        dtype=torch.int64,
        device=device,
    )
    pinned = ids >= 0
    ids = torch.where(pinned, ids, noise.draw(ids.shape, generator))
    return Canvas(
        contexts=contexts,
        lengths=[len(row) for row in rows],
        ids=ids,
        pinned=pinned,
        known=pinned.clone(),
        accepted=torch.zeros_like(pinned),
        best=ids.clone(),
        confidence=pinned.float(),
        open=~pinned,
    )


def seed(canvas: Canvas, row: int, guess: Sequence[int | None], head: Head) -> None:
    """Condition the first step of one canvas on `guess`, from its first position on, as if the model had just said it;
    None: no guess at that position."""
    rows, positions = canvas.open.nonzero().unbind(dim=1)
    if canvas.signal is None:
        canvas.signal = Signal.nothing(head, len(rows))
    said = [-1 if token is None else token for token in guess]
    tokens = torch.tensor(said, dtype=canvas.ids.dtype, device=canvas.ids.device)
    here = (rows == row) & (positions < len(guess))
    canvas.signal.sums[here] = head.guessed(tokens[positions[here]], SURE)


def reopened(canvas: Canvas, positions: Tensor, noise: Noise, generator: torch.Generator) -> Canvas:
    """The same canvases with `positions` [B, L] back to noise and everything else pinned as it stands."""
    ids = torch.where(positions, noise.draw(positions.shape, generator), canvas.best)
    return Canvas(
        contexts=canvas.contexts,
        lengths=canvas.lengths,
        ids=ids,
        pinned=~positions,
        known=~positions,
        accepted=torch.zeros_like(positions),
        best=canvas.best.clone(),
        confidence=canvas.confidence.clone(),
        open=positions.clone(),
    )


def cat(first: Canvas, second: Canvas) -> Canvas:
    """The rows of both canvases, to read from only: no conditioning is kept for a further step."""
    width = max(first.ids.shape[1], second.ids.shape[1])

    def joined(name: str, beyond: int | float | bool) -> Tensor:
        parts: list[Tensor] = [getattr(canvas, name) for canvas in (first, second)]
        return torch.cat([torch.nn.functional.pad(part, (0, width - part.shape[1]), value=beyond) for part in parts])

    return Canvas(
        contexts=[*first.contexts, *second.contexts],
        lengths=[*first.lengths, *second.lengths],
        ids=joined("ids", 0),
        pinned=joined("pinned", True),
        known=joined("known", True),
        accepted=joined("accepted", False),
        best=joined("best", 0),
        confidence=joined("confidence", 1.0),
        open=joined("open", False),
        step=first.step + second.step,
    )


def only(canvas: Canvas, rows: Sequence[int]) -> Canvas:
    """Some of the rows, to read from only: no conditioning is kept for a further step."""
    chosen = list(rows)
    return Canvas(
        contexts=[canvas.contexts[row] for row in rows],
        lengths=[canvas.lengths[row] for row in rows],
        ids=canvas.ids[chosen],
        pinned=canvas.pinned[chosen],
        known=canvas.known[chosen],
        accepted=canvas.accepted[chosen],
        best=canvas.best[chosen],
        confidence=canvas.confidence[chosen],
        open=canvas.open[chosen],
        step=canvas.step,
    )


def rearranged(
    canvas: Canvas, sources: Sequence[Sequence[int | None]], noise: Noise, generator: torch.Generator
) -> Canvas:
    """New canvases, row by row: each position takes over what stood at its source, None is a fresh open one.

    What conditioned the next step is forgotten, as its positions moved; steps are counted from 0 again.
    """
    width = max(map(len, sources))
    device = canvas.ids.device
    index = torch.tensor(
        [[-1 if at is None else at for at in row] + [-2] * (width - len(row)) for row in sources], device=device
    ).reshape(len(sources), width)
    fresh, beyond = index == -1, index == -2

    def moved(part: Tensor, anew: Tensor | bool | float, beyond_end: bool | float) -> Tensor:
        there = part.gather(1, index.clamp(min=0))
        there = torch.where(fresh, anew if isinstance(anew, Tensor) else torch.full_like(there, anew), there)
        return there.masked_fill(beyond, beyond_end)

    drawn = noise.draw(index.shape, generator)
    return Canvas(
        contexts=canvas.contexts,
        lengths=[len(row) for row in sources],
        ids=moved(canvas.ids, drawn, 0),
        pinned=moved(canvas.pinned, False, True),
        known=moved(canvas.known, False, True),
        accepted=moved(canvas.accepted, False, False),
        best=moved(canvas.best, drawn, 0),
        confidence=moved(canvas.confidence, 0.0, 1.0),
        open=moved(canvas.open, True, False),
    )
