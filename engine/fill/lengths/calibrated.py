"""The width of a gap as a model sees it at first sight, `calibrated`: one that fits looks surer than is usual.

Source: CAL, "Diffusion LMs Can Approximate Optimal Infilling Lengths Implicitly" (arXiv:2602.00476).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import torch

from engine.fill.constraints import forbid
from engine.fill.executor import Step
from engine.fill.gap import Gap
from engine.fill.lengths.strategies import Fitted, Fitting
from engine.models.length_prior import PUBLISHED_PRIOR
from engine.models.logits import Logits

NEAR = 3
"""Widths on either side of the best one that are looked at next."""
CLIMBS = 12
"""Times that the neighbours of the best width so far are looked at, at most."""
TRIED = 3
"""Widths that are filled, at the least: the true one is often the second."""


def calibrated(gap: Gap) -> Fitting:
    """Look at many widths once, climb to the best ones by their calibrated confidence, and fill those."""
    most = min(gap.budget, gap.room)
    prior = gap.model.info.prior or PUBLISHED_PRIOR
    looked: dict[int, float] = {}
    wanted = sorted({min(width, most) for width in gap.model.info.widths})
    for _ in range(1 + CLIMBS):
        confidences = yield from first_sight(gap, wanted)
        looked |= {width: sure / prior(width) for width, sure in zip(wanted, confidences, strict=True)}
        best = max(looked, key=looked.__getitem__)
        wanted = [width for width in range(max(1, best - NEAR), min(most, best + NEAR) + 1) if width not in looked]
        if not wanted or gap.should_stop():
            break
    best_first = sorted(looked, key=looked.__getitem__, reverse=True)
    return (yield from filled(gap, best_first[: max(gap.request.n, TRIED)]))


def first_sight(gap: Gap, widths: Sequence[int]) -> Generator[Step, Logits, list[float]]:
    """Mean probability of the likeliest text in gaps of these widths, all of them masks; one forward pass."""
    canvas = gap.noise_canvas(widths)
    banned = sorted({*gap.model.info.forbidden_ids, gap.model.info.pad_id})
    logits, said = yield from gap.look(canvas, forbid(banned), widths=widths)
    # A slot that would rather not hold text is not sure of any.
    rather_not = logits.of(torch.tensor(banned, device=canvas.ids.device)).logsumexp(dim=-1)
    sure = (said.log_likeliest + said.log_total - torch.logaddexp(said.log_total, rather_not)).exp()
    return [float(part.mean()) for part in sure.split(list(widths))]


def filled(gap: Gap, best_first: Sequence[int]) -> Fitting:
    """The gap at each of these widths; the first width repeats until there are enough rows."""
    widths = [*best_first, *[best_first[0]] * (gap.request.n - len(best_first))]
    canvas = yield from gap.denoise(gap.noise_canvas(widths), widths=widths)
    return Fitted(canvas=canvas, widths=tuple(widths), slack=False, complete=True)
