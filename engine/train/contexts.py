"""Rows of context: examples side by side, each seen by itself alone, and the causal encoder's loss over all tokens.

Behind an example with a gap stands one more token that nobody else sees. It asks, in place of the gap, how wide it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.models.gemma.network import GemmaNetwork
from engine.models.network import Attend
from engine.models.prompts.layout import PAD, WIDTH, width_token
from engine.train.examples import SHORTEST, Example, Examples, followed
from engine.train.loss import capped_cross_entropy

KeysAndValues = dict[int, tuple[Tensor, Tensor]]
"""By layer, [B, K, N, D] each."""
NOTHING = -1
"""The target where no loss is taken, and the example of a place that is left empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """All [B, N]."""

    ids: Tensor
    target: Tensor
    """What follows each token; what WIDTH is answered with; or NOTHING."""
    example: Tensor
    """The number of the example in its row, or NOTHING."""
    position: Tensor
    """In its example."""
    seen: Tensor
    """Where in the row begins what a token does not see of its example, itself aside."""


@dataclass(slots=True)
class Row:
    """One row while it is filled."""

    ids: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    example: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def add(self, example: Example) -> None:
        """Append an example, and the question how wide its gap is."""
        ids, start = followed(example), len(self.ids)
        self._extend(ids, [*ids[1:], NOTHING], range(len(ids)), range(start + 1, start + len(ids) + 1))
        if example.gap is not None:
            cut = len(example.context)
            self._extend([WIDTH], [width_token(len(example.gap))], [cut], [start + cut])
        self.starts.append(start)

    def _extend(self, ids: Sequence[int], target: Sequence[int], position: Sequence[int], seen: Sequence[int]) -> None:
        self.ids += ids
        self.target += target
        self.example += [len(self.starts)] * len(ids)
        self.position += position
        self.seen += seen


def filled_rows(examples: Examples, rows: int, width: int, inner: int = 0) -> Iterator[tuple[Row, list[Example]]]:
    """Rows of at most `width` tokens with their examples, which have up to `inner` gaps inside for 64 tokens."""
    for _ in range(rows):
        row, kept = Row(), list[Example]()
        while (room := width - len(row.ids)) >= SHORTEST:
            size = examples.size(room)
            example = examples.draw(size, inner * size // 64)
            if example is not None:
                row.add(example)
                kept.append(example)
        yield row, kept


def contexts(rows: Sequence[Row], width: int) -> Contexts:
    """The rows as one batch."""
    return Contexts(
        ids=stack([row.ids for row in rows], width, PAD),
        target=stack([row.target for row in rows], width, NOTHING),
        example=stack([row.example for row in rows], width, NOTHING),
        position=stack([row.position for row in rows], width, 0),
        seen=stack([row.seen for row in rows], width, 0),
    )


def stack(rows: Sequence[Sequence[int] | Sequence[bool]], width: int, filler: int | bool) -> Tensor:
    """[B, width], rows filled up with `filler`."""
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])


def next_token_loss(network: GemmaNetwork, batch: Contexts, store: KeysAndValues | None = None) -> Tensor:
    """Mean cross-entropy in nats of each target; `store` receives each layer's keys and values."""
    hidden = network.encode(batch.ids, batch.position, attend_within(network, batch, store))
    counted = batch.target != NOTHING
    cap = network.module.final_logit_softcapping
    return capped_cross_entropy(hidden[counted], network.module.lm_head.weight, batch.target[counted], cap)


def attend_within(network: GemmaNetwork, batch: Contexts, store: KeysAndValues | None = None) -> Attend:
    """Each token sees its example up to what it may see of it, and itself."""
    slots = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    same = batch.example[:, :, None] == batch.example[:, None, :]
    itself = slots[:, None] == slots[None, :]
    mask = same & (slots < batch.seen[:, :, None]) | itself
    near = mask & (batch.position[:, None, :] > batch.position[:, :, None] - network.config.sliding_window)
    full, sliding = (bias(network, each[:, None]) for each in (mask, near))

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if store is not None:
            store[index] = (key, value)
        return network.attention(query, key, value, sliding if network.sliding(index) else full)

    return attend


def one_example(ids: Tensor) -> Contexts:
    """Rows [B, N] that are one text each."""
    positions = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
    nothing = torch.full_like(ids, NOTHING)
    target = torch.cat((ids[:, 1:], nothing[:, :1]), dim=1)
    return Contexts(ids=ids, target=target, example=torch.zeros_like(ids), position=positions, seen=positions + 1)


def encode_rows(network: GemmaNetwork, ids: Tensor, store: KeysAndValues | None = None) -> Tensor:
    """Hidden states [B, N, E] of rows [B, N] that are one text each; `store` as above."""
    batch = one_example(ids)
    return network.encode(ids, batch.position, attend_within(network, batch, store))


def bias(network: GemmaNetwork, mask: Tensor) -> Tensor:
    """What a bool mask adds to the scores, in the format of the products: made once a batch, not in each layer."""
    kind = mask.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else network.module.lm_head.weight.dtype
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
