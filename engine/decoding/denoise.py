"""The denoise loop, the only one: every family, every length strategy, repair and edits run through it."""

from __future__ import annotations

from collections.abc import Callable, Generator

import torch
from torch import Tensor

from engine.core.request import Draft
from engine.decoding.canvas import Canvas
from engine.decoding.executor import Step
from engine.decoding.sampling import Distributions, Policies, StepInfo, distributions
from engine.models.base import Noise, Rows

Denoising = Generator[Step, Tensor, Canvas]


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
        done = policies.settled(info)
        _reopen(canvas, done[:, None])
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
        self_conditioning=canvas.logits,
        conditioned=[canvas.logits is not None] * len(active),
    )


def _advance(
    canvas: Canvas,
    logits: Tensor,
    policies: Policies,
    noise: Noise,
    generator: torch.Generator,
    left: int,
) -> Tensor:
    """One step; returns the entropies [B, L]."""
    open_ = canvas.open
    # The loop's own arithmetic runs where its random numbers are made; only the forward pass is elsewhere.
    places = open_.nonzero()
    logits = policies.constrain(logits.to(open_.device).clone(), places) / policies.temperature(left)
    said = distributions(logits)
    entropy = _spread(open_, said.entropy(), 0.0)
    sampled = _spread(open_, policies.choose(said, places, generator), 0)
    accepted = policies.accept(entropy, policies.mask(sampled) if policies.mask else open_, left)
    earlier = canvas.known & ~canvas.pinned
    _place(canvas, accepted, sampled, said, noise, generator)
    canvas.logits = logits
    # The last step leaves no time to guess again.
    if policies.remask is not None and left > 1:
        _doubt(canvas, policies.remask(canvas.confidence, earlier), noise, generator)
    return entropy


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
    likelihood = said.probabilities.gather(1, canvas.best[open_][:, None])[:, 0]
    canvas.confidence = torch.where(open_, _spread(open_, likelihood, 0.0), canvas.confidence)
    if noise.mask_id is not None:
        canvas.known = canvas.known | accepted


def _doubt(canvas: Canvas, doubtful: Tensor, noise: Noise, generator: torch.Generator) -> None:
    """Put accepted tokens back to noise; nothing is known of them in the next step."""
    canvas.known = canvas.known & ~doubtful
    canvas.ids = torch.where(doubtful, noise.draw(doubtful.shape, generator), canvas.ids)
    wider = canvas.open | doubtful
    if canvas.logits is not None:
        logits = canvas.logits.new_zeros(int(wider.sum()), canvas.logits.shape[1])
        logits[canvas.open[wider]] = canvas.logits
        canvas.logits = logits
    canvas.open = wider


def _reopen(canvas: Canvas, done: Tensor) -> None:
    """Which positions the next step asks about, and the logits that condition it there."""
    still = canvas.open & ~canvas.known & ~done
    if canvas.logits is not None:
        canvas.logits = canvas.logits[still[canvas.open]]
    canvas.open = still


def _spread(places: Tensor, values: Tensor, elsewhere: float) -> Tensor:
    """Values [F] of the True positions of `places` [B, L] as [B, L]."""
    return torch.full(places.shape, elsewhere, dtype=values.dtype, device=places.device).masked_scatter(places, values)
