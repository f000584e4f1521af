"""Rows for masked models: [context | gap of masks | suffix], of which all sees all.

Where a model can ask for more slots and give some up, gaps are too narrow and too wide as well: one mask stands for two
and more tokens, and must ask for more room; what is left over at the end must give itself up.

Source of that: DreamOn (arXiv:2602.01326), section 3.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.learn.contexts import stacked
from engine.models.masked.network import MaskedNetwork

LEFT_OVER = 40
"""Slots too many, at the most."""
MERGED = 0.95
"""The highest likelihood that a mask swallows its neighbour."""
NOTHING = -100
"""The truth where no loss is taken: what cross-entropy ignores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRows:
    """ids [B, T]; lengths [B]; truth [B, T]: what the model is to say at a place, or NOTHING."""

    ids: Tensor
    truth: Tensor
    lengths: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class GapTokens:
    """Ids that stand for no text."""

    mask: int
    end: int
    """In a gap it gives its slot up."""
    expand: int | None = None
    """Asks for two slots."""
    shift: int = 0
    """How far before a token the place is that says it."""


RowOfTruth = list[tuple[int, ...]]
"""Of each place its id and its truth, as in MaskedRows."""


def masked_row(
    context: Sequence[int], gap: tuple[Sequence[int], Sequence[int]], suffix: Sequence[int], shift: int = 0
) -> RowOfTruth:
    """A row with a gap of `hidden_gap`."""
    shown, said = gap
    ids = [*context, *shown, *suffix]
    truth = [*[NOTHING] * len(context), *said, *[NOTHING] * len(suffix)]
    return [*zip(ids, [*truth[shift:], *[NOTHING] * shift], strict=True)]


def masked_rows(rows: Sequence[RowOfTruth], pad: int) -> MaskedRows:
    """They side by side, filled up with `pad`, which nothing sees."""
    lengths = [len(row) for row in rows]
    return MaskedRows(**stacked(rows, max(lengths), {"ids": pad, "truth": NOTHING}), lengths=torch.tensor(lengths))


def hidden_gap(
    tokens: Sequence[int], known: GapTokens, rng: random.Random, most_spare: int = LEFT_OVER
) -> tuple[list[int], list[int]]:
    """A gap as the model sees it, and what each of its masks should say; at least one is a mask. `most_spare`: slots
    too many."""
    # Half of the gaps as a fill begins: nothing of them is known.
    level = 1.0 if rng.random() < 0.5 else rng.random()
    kind = "fitting" if known.expand is None else rng.choice(("fitting", "wide", "narrow"))
    spare = rng.randint(1, most_spare) if kind == "wide" and most_spare > 0 else 0
    merging = rng.uniform(0, MERGED) if kind == "narrow" else 0.0
    masked = [rng.random() < level for _ in tokens]
    masked[rng.randrange(len(tokens))] = True
    gap: list[int] = []
    truth: list[int] = []
    at = 0
    while at < len(tokens):
        end = at + 1
        while masked[at] and end < len(tokens) and masked[end] and rng.random() < merging:
            end += 1
        said = tokens[at] if end == at + 1 or known.expand is None else known.expand
        gap.append(known.mask if masked[at] else tokens[at])
        truth.append(said if masked[at] else NOTHING)
        at = end
    return gap + [known.mask] * spare, truth + [known.end] * spare


def masked_loss(network: MaskedNetwork, batch: MaskedRows) -> Tensor:
    """Mean cross-entropy in nats of what stands after the masks."""
    slots = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    mask = (slots < batch.lengths[:, None])[:, None, None, :]
    hidden = network.run(
        batch.ids,
        slots.expand(batch.ids.shape),
        lambda index, query, key, value: network.attention(query, key, value, mask),
    )
    asked = batch.truth != NOTHING
    return F.cross_entropy(network.logits(hidden[asked]), batch.truth[asked])
