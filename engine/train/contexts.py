"""Rows of context: examples side by side, each seen by itself alone, and the causal encoder's loss over all tokens.

Behind an example with a gap stands one more token that nobody else sees. It asks, in place of the gap, how wide it is.
More of them at the end of a row ask for the width of what is left of a gap, as if its first tokens were typed already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

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
TEXT, GAP, WIDE = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """All [B, N]."""

    ids: Tensor
    target: Tensor
    """What follows each token; what WIDTH is answered with; or NOTHING."""
    kind: Tensor
    """What the target is: the next TEXT, that of a GAP, its end included, or a gap's WIDE."""
    example: Tensor
    """The number of the example in its row, or NOTHING."""
    position: Tensor
    """In its example."""
    seen: Tensor
    """Where in the row begins what a token does not see of its example, itself aside."""


@dataclass(slots=True)
class ContextRow:
    """Examples side by side."""

    tokens: list[tuple[int, ...]] = field(default_factory=list)
    """As in Contexts, part by part."""
    examples: list[Example] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """Where in the row each example begins."""

    def add(self, example: Example) -> None:
        """Append an example, and the question how wide its gap is."""
        ids, start, number = followed(example), len(self.tokens), len(self.examples)
        cut, targets = len(example.context), [*ids[1:], NOTHING]
        self.tokens += [
            (ids[at], targets[at], GAP if at >= cut - 1 else TEXT, number, at, start + at + 1) for at in range(len(ids))
        ]
        self.examples.append(example)
        self.starts.append(start)
        if example.gap is not None:
            self._ask(number, 0)

    def ask(self, room: int) -> None:
        """Append at most `room` questions how wide the rest of a gap is, evenly spread over the gaps."""
        rests = [(number, at) for number, each in enumerate(self.examples) for at in range(1, len(each.gap or ()))]
        if rests and room:
            for number, at in rests[:: -(-len(rests) // room)]:
                self._ask(number, at)

    def _ask(self, number: int, known: int) -> None:
        """How wide is what follows the first `known` tokens of an example's gap?"""
        example = self.examples[number]
        cut = len(example.context) + known
        answer = width_token(len(example.gap or ()) - known)
        self.tokens.append((WIDTH, answer, WIDE, number, cut, self.starts[number] + cut))


def filled_rows(examples: Examples, rows: int, width: int, inner: int = 0) -> Iterator[ContextRow]:
    """Rows of at most `width` tokens, whose examples have up to `inner` gaps inside for 64 tokens."""
    for _ in range(rows):
        row = ContextRow()
        while (room := width - len(row.tokens)) >= SHORTEST:
            size = examples.size(room)
            example = examples.draw(size, inner * size // 64)
            if example is not None:
                row.add(example)
        row.ask(width - len(row.tokens))
        yield row


def contexts(rows: Sequence[ContextRow], width: int) -> Contexts:
    fillers = {"ids": PAD, "target": NOTHING, "kind": TEXT, "example": NOTHING, "position": 0, "seen": 0}
    return Contexts(**stacked([row.tokens for row in rows], width, fillers))


def stacked(rows: Sequence[Sequence[tuple[int, ...]]], width: int, fillers: dict[str, int]) -> dict[str, Tensor]:
    """By name, each part of the tokens in `rows` as [B, width], filled up with its filler."""
    filled = [[*row, *[tuple(fillers.values())] * (width - len(row))] for row in rows]
    return dict(zip(fillers, torch.tensor(filled).movedim(2, 0).contiguous(), strict=True))


def of_tensors(change: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """The same kind of batch with `change` of each of its tensors."""
    if isinstance(batch, Tensor):
        return change(batch)
    return type(batch)(**{each.name: of_tensors(change, getattr(batch, each.name)) for each in fields(batch)})


def context_losses(
    network: GemmaNetwork, batch: Contexts, store: KeysAndValues | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean cross-entropies in nats: of every next token, of those in gaps alone, and of the gaps' widths; 0 where there
    are none. `store` receives each layer's keys and values."""
    hidden = network.encode(batch.ids, batch.position, attend_within(network, batch, store))
    counted = batch.target != NOTHING
    text, gap, wide = (counted & (batch.kind == kind) for kind in (TEXT, GAP, WIDE))

    def loss(of: Tensor) -> Tensor:
        cap = network.module.final_logit_softcapping
        return capped_cross_entropy(hidden[of], network.module.lm_head.weight, batch.target[of], cap)

    of_gaps, share = loss(gap), gap.sum() / (text | gap).sum()
    return share * of_gaps + (1 - share) * loss(text), of_gaps, loss(wide)


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


def bias(network: GemmaNetwork, mask: Tensor) -> Tensor:
    """What a bool mask adds to the scores, in the format of the products: made once a batch, not in each layer."""
    kind = mask.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else network.module.lm_head.weight.dtype
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
