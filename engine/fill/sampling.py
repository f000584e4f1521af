"""Policies of the denoise loop: which tokens to accept, when to stop, at which temperature to sample. Small functions,
passed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.fill.constraints import Constrain
from engine.fill.distributions import Draw, one_of
from engine.models.base import Noise, Sampling

LEAST = 1e-12
"""Least probability: the logarithm of 0 is none."""
_EARLY = 0.5
"""Weight of the log-probabilities of tokens after a first step, when most of them are guesses."""
Temperature = Callable[[int], float]
"""Steps left (the first step has all of them) -> temperature."""
AcceptPolicy = Callable[[Tensor, Tensor, int], Tensor]
"""Entropies [B, L] in nats, candidates [B, L], steps left -> which candidates are accepted [B, L]."""
Mask = Callable[[Tensor], Tensor]
"""Tokens [B, L] on offer -> the open positions [B, L] that may accept theirs now, at least one of each row."""
Settled = Callable[["StepInfo"], Tensor]
"""-> which rows [B] are done."""
Remask = Callable[[Tensor, Tensor], Tensor]
"""Confidences [B, L], what was accepted in earlier steps [B, L] -> which of it goes back to noise [B, L]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """The state after a step, for stop policies."""

    entropy: Tensor
    """[B, L], 0 where nothing is open."""
    free: Tensor
    """Positions that are not pinned, [B, L]."""
    known: Tensor
    """[B, L]"""
    confidence: Tensor
    """Probability of the answer as it stands [B, L]."""
    unchanged: Tensor
    """Consecutive steps, this one included, that left the answer unchanged, [B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """One way to denoise."""

    max_steps: int
    temperature: Temperature
    accept: AcceptPolicy
    settled: Settled
    constrain: Constrain
    greedy_rows: int = 0
    """Number of first rows that take the likeliest token of each position; the others draw it."""
    top_p: float = 1.0
    """These draw among the likeliest tokens that have this probability together."""
    draw: Draw = one_of
    queried: tuple[int, ...] = ()
    """Tokens whose log-probabilities are wanted at each open position."""
    remask: Remask | None = None
    """None: tokens that are accepted for good stay."""
    mask: Mask | None = None
    """None: every open position may accept."""


def published_policies(sampling: Sampling, noise: Noise, constrain: Constrain, *, greedy_rows: int = 0) -> Policies:
    """The published sampler of a checkpoint: entropy bound, temperature schedule, and its stop.

    Under uniform noise every token but the accepted ones is noised again at each step, until the answer is stable and
    confident. With a mask token an accepted token stays, and the canvas is done when no mask is left; there the first
    `greedy_rows` rows take the likeliest tokens instead of drawing them. Either is done as soon as all of it is sure.
    """
    absorbing = noise.mask_id is not None
    settled = (
        all_known if absorbing else stable_and_confident(sampling.stability_threshold, sampling.confidence_threshold)
    )
    return Policies(
        max_steps=sampling.max_steps,
        temperature=linear_temperature(sampling.t_min, sampling.t_max, sampling.max_steps),
        greedy_rows=greedy_rows if absorbing else 0,
        top_p=sampling.top_p if absorbing else 1.0,
        accept=entropy_bound(sampling.entropy_bound, in_time=absorbing, from_left=sampling.from_left),
        settled=lambda info: settled(info) | all_sure(info, sampling.sure),
        constrain=constrain,
    )


def seeded(device: str, seed: int) -> torch.Generator:
    """The random generator of one request."""
    # A copy of one that is there: torch can't make its own while it is not imported whole.
    generator = torch.default_generator.clone_state() if device == "cpu" else torch.Generator(device=device)
    return generator.manual_seed(seed)


def linear_temperature(t_min: float, t_max: float, max_steps: int) -> Temperature:
    """From t_max at the first step down towards t_min."""
    return lambda left: t_min + (t_max - t_min) * (left / max_steps)


def entropy_bound(bound: float, *, in_time: bool = False, from_left: bool = False) -> AcceptPolicy:
    """Positions in order of entropy while the sum before them stays within `bound` (arXiv:2505.24857).

    The first position is always accepted, so a canvas can't stand still. `in_time`: as many as it takes to be done with
    the last step, sure or not. `from_left`: in the order that they stand in. What is surest before anything is known
    is what every text has, such as a line's end; a small model that begins with it writes around it.
    """

    def accept(entropy: Tensor, candidates: Tensor, left: int) -> Tensor:
        entropy = entropy.masked_fill(~candidates, torch.inf)
        order = torch.argsort((~candidates).float() if from_left else entropy, dim=-1, stable=True)
        ordered = entropy.gather(-1, order)
        accepted = torch.cumsum(ordered, dim=-1) - ordered <= bound
        if in_time:
            due = (candidates.sum(dim=-1, keepdim=True) + left - 1) // left
            accepted |= torch.arange(accepted.shape[1], device=accepted.device) < due
        return torch.zeros_like(candidates).scatter(-1, order, accepted) & candidates

    return accept


def either(first: Settled, second: Settled) -> Settled:
    return lambda info: first(info) | second(info)


def stable_and_confident(stability_threshold: int, confidence_threshold: float) -> Settled:
    """Stop after `stability_threshold` steps without a change, if the mean entropy of free positions is below
    `confidence_threshold`."""

    def settled(info: StepInfo) -> Tensor:
        free = info.free.sum(dim=-1).clamp(min=1)
        return (info.unchanged >= stability_threshold) & (info.entropy.sum(dim=-1) / free < confidence_threshold)

    return settled


def doubtful(below: float) -> Remask:
    """Accepted tokens with a probability under `below` are guessed again, now that more is known around them."""

    def remask(confidence: Tensor, accepted: Tensor) -> Tensor:
        return accepted & (confidence < below)

    return remask


def all_known(info: StepInfo) -> Tensor:
    return info.known.all(dim=-1)


def all_sure(info: StepInfo, least: float) -> Tensor:
    return (info.known | (info.confidence >= least)).all(dim=-1)


class Race:
    """Rows of different widths, of which the best go on after a first step."""

    def __init__(self, kept: int, odds: Sequence[float]) -> None:
        """`odds`: of each row by its width alone, in nats."""
        self._kept, self._odds = kept, torch.tensor(odds)
        self.rows: list[int] = [*range(len(odds))]
        """The rows that are left."""

    def lost(self, info: StepInfo) -> Tensor:
        """A `Settled` policy: the rows that dropped out."""
        out = torch.ones(len(self._odds), dtype=torch.bool, device=info.free.device)
        if len(self.rows) > self._kept:
            sure = (info.confidence.clamp(min=LEAST).log() * info.free).sum(dim=-1).cpu()
            order = torch.argsort(self._odds + _EARLY * sure, descending=True, stable=True)
            self.rows = sorted(order[: self._kept].tolist())
        out[self.rows] = False
        return out
