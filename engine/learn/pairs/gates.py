"""The figures by which a run of pairs is judged, on held-out packages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.learn.pairs.batches import CanvasStep
from engine.learn.pairs.canvas import NOTHING, Breaks, Pairs, checked, greedy, lines, prefill, said
from engine.models.causal.opening import Coder

PLACES = 8
"""First places of a canvas that have a figure each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Figures of one pass over blank canvases: shares from 0 to 1, lengths in tokens."""

    canvases: int
    right: float
    """Share of right tokens among the gap's and the slot after them."""
    by_place: tuple[float, ...]
    """The same for each of the first places."""
    in_row: float
    """Mean number of right tokens from the left."""
    whole: float
    """Share of canvases all of whose tokens are right, the end too."""
    end: float
    """Share of right ends, within one token, among gaps that end on their canvas."""
    accepted: float
    """Mean number of tokens from the left that the coder accepts, up to the end of the line that it writes."""
    accepted_of: float
    """Mean number of tokens up to that end."""

    def line(self) -> str:
        """The figures in one line of a log."""
        places = " ".join(f"{100 * each:.0f}" for each in self.by_place)
        return (
            f"right {100 * self.right:.1f}%  by place {places}  in a row {self.in_row:.2f}"
            f"  whole {100 * self.whole:.1f}%  end {100 * self.end:.1f}%"
            f"  accepted {self.accepted:.2f} of {self.accepted_of:.2f}  ({self.canvases} canvases)"
        )


@torch.no_grad()
def assess(coder: Coder, pairs: Pairs, steps: Iterable[CanvasStep], breaks: Breaks) -> Gates:
    """Judge one pass over the canvases of `steps`."""
    pad, base = coder.fim.pad, coder.network
    found: defaultdict[str, list[Tensor]] = defaultdict(list)
    for step in steps:
        of = prefill(base, step)
        width = step.text.shape[2]
        blank = torch.full_like(step.text, -1)
        hidden = said(pairs, of, blank)
        drafts = torch.cat([base.logits(part).argmax(dim=-1) for part in hidden.split(8)])
        there = step.gap > 0
        judged = (torch.arange(width, device=there.device) <= step.gap[..., None]) & there[..., None]
        hit = (drafts == step.text) & judged
        found["judged"].append(_by_place(judged[there]))
        found["hit"].append(_by_place(hit[there]))
        runs = (hit | ~judged).cumprod(dim=2)
        found["in_row"].append((runs.bool() & judged).sum(dim=2)[there])
        found["whole"].append(runs.all(dim=2)[there])
        ends = there & (step.gap < width)
        found["end"].append(((_ends(drafts, pad) - step.gap).abs() <= 1)[ends])
        checks = checked(base, of, drafts)
        # What the coder itself writes, to the end of its line.
        answers = greedy(base, of, width)
        own = lines(answers, breaks, pad)
        whole_lines = step.to_line_end & there
        wanted = ((own != pad) & (own != NOTHING)).cumprod(dim=2).bool()
        kept = (drafts == checks).cumprod(dim=2).bool() & wanted
        found["accepted"].append(kept.sum(dim=2)[whole_lines])
        found["accepted_of"].append(wanted.sum(dim=2)[whole_lines])
    one = {name: torch.cat(each).float() for name, each in found.items() if name not in ("judged", "hit")}
    judged, hit = (torch.stack(found[name]).sum(dim=0).float() for name in ("judged", "hit"))
    mean = {name: float(each.mean()) for name, each in one.items()}
    return Gates(
        canvases=len(one["in_row"]),
        right=float(hit.sum() / judged.sum()),
        by_place=tuple((hit / judged.clamp_min(1))[:PLACES].tolist()),
        **mean,
    )


def _by_place(flags: Tensor) -> Tensor:
    """Counts of flags [C, W] by place, at a length that all widths share."""
    counts = flags.sum(dim=0)
    return torch.cat((counts, counts.new_zeros(64 - len(counts))))


def _ends(drafts: Tensor, pad: int) -> Tensor:
    """[B, G] tokens before the first unused slot; the width where there is none."""
    return (drafts != pad).cumprod(dim=2).sum(dim=2)
