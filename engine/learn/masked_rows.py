"""Training rows for masked models: [context | gap of masks | suffix], every position sees every other.

For a model that can change a gap's width, some gaps are too narrow and some too wide. A mask that stands for several
tokens must ask for more room; a mask that is left over at the end must give itself up. Source: DreamOn
(arXiv:2602.01326), section 3.
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
"""Most slots too many."""
MERGED = 0.95
"""The highest probability that a mask stands for its neighbour as well."""
NOTHING = -100
"""The target where no loss is taken, which cross-entropy ignores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRows:
    """A batch: ids [B, T]; lengths [B]; truth [B, T], the token that the model has to predict at a place, or
    NOTHING."""

    ids: Tensor
    truth: Tensor
    lengths: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTokens:
    """Token ids that stand for no text."""

    mask: int
    end: int
    """Gives up its slot in a gap."""
    expand: int | None = None
    """Asks for two slots."""
    shift: int = 0
    """A token is predicted so many places before its own."""


RowOfTruth = list[tuple[int, ...]]
"""The id and the truth of each place, as in MaskedRows."""


def masked_row(
    context: Sequence[int], gap: tuple[Sequence[int], Sequence[int]], suffix: Sequence[int], shift: int = 0
) -> RowOfTruth:
    """A row around a gap that `hidden_gap` made."""
    shown, said = gap
    ids = [*context, *shown, *suffix]
    truth = [*[NOTHING] * len(context), *said, *[NOTHING] * len(suffix)]
    return [*zip(ids, [*truth[shift:], *[NOTHING] * shift], strict=True)]


def masked_rows(rows: Sequence[RowOfTruth], pad: int) -> MaskedRows:
    """Rows as a batch, padded with `pad`, which no position sees."""
    lengths = [len(row) for row in rows]
    return MaskedRows(**stacked(rows, max(lengths), {"ids": pad, "truth": NOTHING}), lengths=torch.tensor(lengths))


def hidden_gap(
    tokens: Sequence[int], known: ControlTokens, rng: random.Random, most_spare: int = LEFT_OVER
) -> tuple[list[int], list[int]]:
    """A gap as the model sees it, and the token that each of its masks has to predict; at least one is a mask.
    `most_spare`: most slots too many."""
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
    """Mean cross-entropy in nats of the tokens behind the masks."""
    slots = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    mask = (slots < batch.lengths[:, None])[:, None, None, :]
    hidden = network.run(
        batch.ids,
        slots.expand(batch.ids.shape),
        lambda index, query, key, value: network.attention(query, key, value, mask),
    )
    asked = batch.truth != NOTHING
    return F.cross_entropy(network.logits(hidden[asked]), batch.truth[asked])
