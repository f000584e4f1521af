"""The denoise loop, the only one: every family, every length strategy, repair and edits run through it."""

from __future__ import annotations

from collections.abc import Callable, Generator

import torch
from torch import Tensor

from engine.common.request import Draft
from engine.fill.canvas import Canvas
from engine.fill.constraints import Bans
from engine.fill.distributions import Distributions, look
from engine.fill.executor import Step
from engine.fill.sampling import Policies, StepInfo
from engine.models.base import Noise, Rows
from engine.models.logits import Logits

Denoising = Generator[Step, Logits, Canvas]


def denoise(
    canvas: Canvas,
    policies: Policies,
    noise: Noise,
    generator: torch.Generator,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    draft: Callable[[Canvas], Draft],
) -> Denoising:
    """Denoise `canvas` in place until its rows are settled, the steps are used up or `should_stop` says so.

    Yields the forward pass that each step needs and is sent its logits. A pinned position never changes; a row that is
    settled takes part in no further pass. At any moment `canvas.best` is the answer.
    """
    first, unchanged = canvas.step, torch.zeros_like(canvas.best[:, 0])
    for left in range(policies.max_steps, 0, -1):
        if not canvas.open.any():
            break
        logits = yield Step(rows=rows_of(canvas), draft=lambda: draft(canvas))
        before = canvas.best
        entropy = _advance(canvas, logits, policies, noise, generator, left)
        unchanged = torch.where((canvas.best == before).all(dim=1) & (canvas.step > first), unchanged + 1, 0)
        canvas.step += 1
        info = StepInfo(
            entropy=entropy,
            free=~canvas.pinned,
            known=canvas.known,
            confidence=canvas.confidence,
            unchanged=unchanged,
        )
        _reopen(canvas, policies.settled(info)[:, None])
        if should_stop():
            break
    return canvas


def rows_of(canvas: Canvas) -> Rows:
    """The canvases that are not settled yet."""
    active = canvas.open.any(dim=1).nonzero()[:, 0].tolist()
    return Rows(
        contexts=[canvas.contexts[row] for row in active],
        canvas=canvas.ids[active],
        lengths=[canvas.lengths[row] for row in active],
        open=canvas.open[active],
        self_conditioning=None if canvas.signal is None else canvas.signal.embeddings(),
        conditioned=[canvas.signal is not None] * len(active),
    )


def _advance(
    canvas: Canvas,
    logits: Logits,
    policies: Policies,
    noise: Noise,
    generator: torch.Generator,
    left: int,
) -> Tensor:
    """One step; returns the entropies [B, L]."""
    open_ = canvas.open
    said = _said(logits, open_.nonzero(), policies, generator, left)
    entropy = _spread(open_, said.entropy, 0.0)
    sampled = _spread(open_, said.drawn, 0)
    accepted = policies.accept(entropy, policies.mask(sampled) if policies.mask else open_, left)
    earlier = canvas.known & ~canvas.pinned & open_.any(dim=1, keepdim=True)
    _place(canvas, accepted, sampled, said, noise, generator)
    canvas.signal = said.signal
    if policies.queried:
        canvas.log_queried = torch.zeros(*open_.shape, len(policies.queried), device=open_.device)
        canvas.log_queried[open_] = said.log_queried
    # The last step leaves no time to guess again.
    if policies.remask is not None and left > 1:
        _doubt(canvas, policies.remask(canvas.confidence, earlier), noise, generator)
    return entropy


def _said(logits: Logits, places: Tensor, policies: Policies, generator: torch.Generator, left: int) -> Distributions:
    bans, temperature = Bans(), policies.temperature(left)
    policies.constrain(bans, logits, places)
    drawing = places[:, 0] >= policies.greedy_rows if policies.greedy_rows else True
    if isinstance(drawing, Tensor) and not drawing.any():
        drawing = False
    queried = torch.tensor(policies.queried, device=places.device).expand(len(places), -1) if policies.queried else None
    return look(
        logits,
        bans,
        temperature=temperature,
        drawing=drawing,
        draw=policies.draw,
        top_p=policies.top_p,
        generator=generator,
        queried=queried,
    )


def _place(
    canvas: Canvas,
    accepted: Tensor,
    sampled: Tensor,
    said: Distributions,
    noise: Noise,
    generator: torch.Generator,
) -> None:
    open_ = canvas.open
    first_choice = _spread(open_, said.likeliest, 0)
    answer = torch.where(accepted, sampled, first_choice) if noise.mask_id is not None else first_choice
    canvas.accepted = accepted
    canvas.ids = torch.where(accepted, sampled, torch.where(open_, noise.draw(open_.shape, generator), canvas.ids))
    canvas.best = torch.where(open_, answer, canvas.best)
    logs = _spread(open_, said.log_likeliest, 0.0)
    logs = torch.where(canvas.best == sampled, _spread(open_, said.log_drawn, 0.0), logs)
    canvas.confidence = torch.where(open_, logs.exp(), canvas.confidence)
    if noise.mask_id is not None:
        canvas.known = canvas.known | accepted


def _doubt(canvas: Canvas, doubtful: Tensor, noise: Noise, generator: torch.Generator) -> None:
    """Turn accepted tokens back to noise; they condition nothing in the next step."""
    canvas.known = canvas.known & ~doubtful
    canvas.ids = torch.where(doubtful, noise.draw(doubtful.shape, generator), canvas.ids)
    wider = canvas.open | doubtful
    if canvas.signal is not None:
        canvas.signal = canvas.signal.spread(canvas.open[wider])
    canvas.open = wider


def _reopen(canvas: Canvas, done: Tensor) -> None:
    """Choose the positions that the next step predicts, and what conditions it there."""
    still = canvas.open & ~canvas.known & ~done
    if canvas.signal is not None:
        canvas.signal = canvas.signal[still[canvas.open]]
    canvas.open = still


def _spread(places: Tensor, values: Tensor, otherwise: float) -> Tensor:
    """Values [F] of the True positions of `places` [B, L] as [B, L]."""
    return torch.full(places.shape, otherwise, dtype=values.dtype, device=places.device).masked_scatter(places, values)
