"""What the denoise loop is told: which tokens to take, when to stop, how hot to sample. Small functions, passed in.

What the model says of the open positions is looked at once, as `Distributions`, which everything that decides shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.models.base import Noise, Sampling
from engine.models.vocabulary import Vocabulary

_LEAST = -1e4
"""Log-probability of what can't be, in a sum where it counts for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributions:
    """Of F positions over a vocabulary of V tokens."""

    log_probabilities: Tensor
    """[F, V]"""
    probabilities: Tensor
    """[F, V]"""
    likeliest: Tensor
    """Tokens [F]."""

    def __getitem__(self, chosen: Tensor) -> Distributions:
        """Those of some positions, bool [F]."""
        return Distributions(
            log_probabilities=self.log_probabilities[chosen],
            probabilities=self.probabilities[chosen],
            likeliest=self.likeliest[chosen],
        )

    def entropy(self) -> Tensor:
        """Nats [F]."""
        return -(self.probabilities * self.log_probabilities.clamp(min=_LEAST)).sum(dim=-1)


Temperature = Callable[[int], float]
"""Steps left (the first step has all of them) -> temperature."""
Choose = Callable[[Distributions, Tensor, torch.Generator], Tensor]
"""Distributions of F positions, their places [F, 2] (row, position) -> tokens [F]."""
Accept = Callable[[Tensor, Tensor, int], Tensor]
"""Entropies [B, L] in nats, candidates [B, L], steps left -> which candidates are accepted [B, L]."""
Mask = Callable[[Tensor], Tensor]
"""Tokens [B, L] that would be taken -> which open positions [B, L] may take theirs now, one of a row at the least."""
Settled = Callable[["StepInfo"], Tensor]
"""-> which rows [B] are done."""
Remask = Callable[[Tensor, Tensor], Tensor]
"""Confidences [B, L], what was accepted in earlier steps [B, L] -> which of it goes back to noise [B, L]."""
Constrain = Callable[[Tensor, Tensor], Tensor]
"""Raw logits [F, V], their places [F, 2] (row, position) -> logits; may write in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInfo:
    """What a stop policy may judge by, after a step."""

    entropy: Tensor
    """[B, L], 0 where nothing is open."""
    free: Tensor
    """Positions that are not pinned, [B, L]."""
    known: Tensor
    """[B, L]"""
    confidence: Tensor
    """Probability of the answer as it stands [B, L]."""
    unchanged: Tensor
    """Steps in a row, this one included, that left the answer as it was, [B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """One way to denoise."""

    max_steps: int
    temperature: Temperature
    choose: Choose
    accept: Accept
    settled: Settled
    constrain: Constrain
    remask: Remask | None = None
    """None: what is accepted for good stays."""
    mask: Mask | None = None
    """None: every open position may."""


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
        choose=likeliest_in_first(greedy_rows, nucleus(sampling.top_p)) if absorbing else draw,
        accept=entropy_bound(sampling.entropy_bound, in_time=absorbing),
        settled=lambda info: settled(info) | all_sure(info, sampling.sure),
        constrain=constrain,
    )


def linear_temperature(t_min: float, t_max: float, max_steps: int) -> Temperature:
    """From t_max at the first step down towards t_min."""
    return lambda left: t_min + (t_max - t_min) * (left / max_steps)


def draw(said: Distributions, places: Tensor, generator: torch.Generator) -> Tensor:
    """One token of each distribution, where one random number hits the sum of those before it.

    `torch.multinomial` draws a number for each token of the vocabulary instead: five to eight times as long on a CPU.
    """
    reached = said.probabilities.cumsum(dim=-1)
    total = reached[:, -1:]
    hit = torch.rand(total.shape, generator=generator, device=total.device) * total
    # Rounded up to the whole it would hit a token that has no probability.
    hit = torch.minimum(hit, total.nextafter(torch.zeros_like(total)))
    return torch.searchsorted(reached, hit, right=True)[:, 0]


def nucleus(top_p: float) -> Choose:
    """Draw among the likeliest tokens that have the probability `top_p` together, the likeliest one always."""
    if top_p >= 1:
        return draw

    def choose(said: Distributions, places: Tensor, generator: torch.Generator) -> Tensor:
        ordered, order = torch.sort(said.probabilities, dim=-1, descending=True)
        beyond = ordered.cumsum(dim=-1) - ordered >= top_p
        kept = said.probabilities.masked_fill(beyond.scatter(-1, order, beyond), 0.0)
        return draw(replace(said, probabilities=kept), places, generator)

    return choose


def likeliest_in_first(rows: int, others: Choose = draw) -> Choose:
    """The first `rows` rows take the likeliest token, the others draw, by `others`."""

    def choose(said: Distributions, places: Tensor, generator: torch.Generator) -> Tensor:
        drawn = places[:, 0] >= rows
        if not drawn.any():
            return said.likeliest
        return said.likeliest.masked_scatter(drawn, others(said[drawn], places[drawn], generator))

    return choose


def entropy_bound(bound: float, *, in_time: bool = False) -> Accept:
    """Positions in order of entropy while the sum before them stays within `bound` (arXiv:2505.24857).

    The surest position is always taken, so a canvas can't stand still. `in_time`: as many as it takes to be done with
    the last step, sure or not.
    """

    def accept(entropy: Tensor, candidates: Tensor, left: int) -> Tensor:
        entropy = entropy.masked_fill(~candidates, torch.inf)
        ordered, order = torch.sort(entropy, dim=-1)
        taken = torch.cumsum(ordered, dim=-1) - ordered <= bound
        if in_time:
            due = (candidates.sum(dim=-1, keepdim=True) + left - 1) // left
            taken |= torch.arange(taken.shape[1], device=taken.device) < due
        return torch.zeros_like(candidates).scatter(-1, order, taken) & candidates

    return accept


def stable_and_confident(stability_threshold: int, confidence_threshold: float) -> Settled:
    """So many steps did not change the answer, and the mean entropy of free positions is under the threshold."""

    def settled(info: StepInfo) -> Tensor:
        free = info.free.sum(dim=-1).clamp(min=1)
        return (info.unchanged >= stability_threshold) & (info.entropy.sum(dim=-1) / free < confidence_threshold)

    return settled


def doubtful(below: float) -> Remask:
    """What was accepted with a probability under `below` is guessed again, now that more is known around it."""

    def remask(confidence: Tensor, accepted: Tensor) -> Tensor:
        return accepted & (confidence < below)

    return remask


def all_known(info: StepInfo) -> Tensor:
    return info.known.all(dim=-1)


def all_sure(info: StepInfo, least: float) -> Tensor:
    return (info.known | (info.confidence >= least)).all(dim=-1)


def forbid(ids: Sequence[int]) -> Constrain:
    banned = torch.tensor(sorted(set(ids)), dtype=torch.int64)

    def constrain(logits: Tensor, places: Tensor) -> Tensor:
        return logits.index_fill_(1, banned.to(logits.device), -torch.inf)

    return constrain


def forbid_in(rows: Sequence[int], token: int) -> Constrain:
    """`token` may not enter the gaps of these rows."""
    banned = torch.tensor(rows, dtype=torch.int64)

    def constrain(logits: Tensor, places: Tensor) -> Tensor:
        at = torch.isin(places[:, 0], banned.to(places.device))
        logits[at, token] = -torch.inf
        return logits

    return constrain


def begin_with(head: str, vocabulary: Vocabulary, *, one_line: bool = False) -> Constrain:
    """The first positions of a gap spell `head`, unless something stands there for good; what comes after it is free.

    A token shorter than what is left of `head` leaves the rest to the next position. With `one_line` no line breaks
    but those of `head` enter the gap.
    """
    breaks = torch.tensor(vocabulary.line_breaks if one_line else (), dtype=torch.int64)

    def constrain(logits: Tensor, places: Tensor) -> Tensor:
        free = torch.ones(len(places), dtype=torch.bool)
        for row in places[places[:, 1] == 0, 0].tolist():
            left = head.encode()
            for at in (places[:, 0] == row).nonzero()[:, 0].tolist():
                allowed = torch.full_like(logits[at], -torch.inf)
                agreeing = torch.tensor(_agreeing(vocabulary, left, one_line), device=logits.device)
                allowed[agreeing] = logits[at, agreeing]
                if not allowed.isfinite().any():
                    break  # nothing that may stand here spells it: the answer will be dropped
                logits[at], free[at] = allowed, False
                spelled = vocabulary.bytes[int(allowed.argmax())]
                if len(spelled) >= len(left):
                    break
                left = left[len(spelled) :]
        where = free.nonzero().to(logits.device)
        logits[where, breaks.to(logits.device)] = -torch.inf
        return logits

    return constrain


def _agreeing(vocabulary: Vocabulary, head: bytes, one_line: bool) -> list[int]:
    """Tokens that `head` may begin with, or begins with; with `one_line` they break no line behind it."""
    agreeing = vocabulary.agreeing(head)
    if not one_line:
        return agreeing
    return [token for token in agreeing if not {*b"\r\n"} & {*vocabulary.bytes[token][len(head) :]}]


def in_turn(*constraints: Constrain) -> Constrain:

    def constrain(logits: Tensor, places: Tensor) -> Tensor:
        for each in constraints:
            logits = each(logits, places)
        return logits

    return constrain


def distributions(logits: Tensor) -> Distributions:
    """Of processed float32 logits [F, V]."""
    log_probabilities = logits.log_softmax(dim=-1)
    return Distributions(
        log_probabilities=log_probabilities, probabilities=log_probabilities.exp(), likeliest=likeliest(logits)
    )


def likeliest(logits: Tensor) -> Tensor:
    """The token with the largest of its logits [F, V]; [F]."""
    if logits.device.type != "cpu":
        return logits.argmax(dim=-1)
    # torch takes ten times as long there.
    return torch.from_numpy(logits.detach().numpy().argmax(axis=-1))
