"""Rows of context for training, and the causal head's loss over all of their tokens.

A row has examples side by side, each of which sees itself alone. After the examples come their gaps, those at the
end of an example and those inside. A gap sees the context before it. It begins with the text after the gap and the
question how wide the gap is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.learn.examples import SHORTEST, Example, Examples
from engine.learn.loss import capped_cross_entropy
from engine.models.gemma.network import GemmaNetwork
from engine.models.network import Attend, bias
from engine.models.prompts.layout import END, PAD, gap_tokens, question, width_token

KeysAndValues = dict[int, tuple[Tensor, Tensor]]
"""Keys and values by layer, [B, K, N, D] each."""
NOTHING = -1
"""The target where no loss is taken, and the example of an empty place."""
TEXT, GAP, WIDE = range(3)
INNER_SHARE = 0.25
"""Share of a row that gaps inside its examples may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """A batch of rows; all tensors are [B, N]."""

    ids: Tensor
    target: Tensor
    """The next token, the answer to WIDTH, or NOTHING (as for the text after a gap)."""
    kind: Tensor
    """What the target belongs to: TEXT, a GAP with its end, or WIDE (a width)."""
    example: Tensor
    """The number of the token's example in its row, or NOTHING."""
    position: Tensor
    """The position within the example."""
    seen: Tensor
    """The end, in the row, of what a token sees of its example, apart from itself and its gap."""
    gap: Tensor
    """The number of the token's gap in its row, of which it sees what comes before it; or NOTHING."""


@dataclass(slots=True)
class ContextRow:
    """A row that is being filled with examples and their gaps."""

    pinned: int | None = None
    """Tokens of the text after a gap that are repeated before it, for a model that predicts widths; None: it is not
    repeated."""
    tokens: list[tuple[int, ...]] = field(default_factory=list)
    """The parts of `Contexts`, token by token."""
    examples: list[Example] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """Where in the row each example begins."""
    gaps: int = 0

    def add(self, example: Example) -> None:
        """Append an example and the gap at its end."""
        ids, start, number = example.context, len(self.tokens), len(self.examples)
        targets = [*ids[1:], example.gap[0] if example.gap else NOTHING]
        self.tokens += [(ids[at], targets[at], TEXT, number, at, start + at + 1, NOTHING) for at in range(len(ids))]
        self.examples.append(example)
        self.starts.append(start)
        if example.gap:
            self._add_gap(number, len(ids), example.gap, example.after)

    def add_inner_gaps(self, room: int) -> None:
        """Append gaps inside the examples, as far as `room` tokens allow."""
        most = len(self.tokens) + room
        for number, example in enumerate(self.examples):
            for gap in example.inner:
                if not self._add_gap(number, gap.cut, gap.gap, gap.after, most):
                    return

    def _add_gap(
        self, number: int, cut: int, gap: Sequence[int], after: Sequence[int], most: int | None = None
    ) -> bool:
        """Append the gap after the first `cut` tokens of an example; False where the row would exceed `most`
        tokens."""
        query = [] if self.pinned is None else question(after[: self.pinned], cut)
        targets = [(NOTHING, TEXT)] * (len(query) - 1) + [(width_token(len(gap)), WIDE)] * bool(query)
        targets += [(each, GAP) for each in (*gap, END)]
        tokens = [*query, *gap_tokens(gap, self.examples[number].context[cut - 1], cut)]
        if most is not None and len(self.tokens) + len(tokens) > most:
            return False
        seen = self.starts[number] + cut
        self.tokens += [
            # What is read again is not seen twice.
            (token, *target, number, position, seen - (at >= len(query)), self.gaps)
            for at, ((token, position), target) in enumerate(zip(tokens, targets, strict=True))
        ]
        self.gaps += 1
        return True


def filled_rows(examples: Examples, rows: int, width: int, inner: int = 0) -> Iterator[ContextRow]:
    """Rows of at most `width` tokens, whose examples have up to `inner` gaps inside for every 64 tokens."""
    of_examples = int(width * (1 - INNER_SHARE)) if inner else width
    for _ in range(rows):
        row = ContextRow(examples.read)
        while (room := of_examples - len(row.tokens)) >= SHORTEST:
            size = examples.size(room)
            example = examples.draw(size, inner * size // 64)
            if example is not None:
                row.add(example)
        row.add_inner_gaps(width - len(row.tokens))
        yield row


def contexts(rows: Sequence[ContextRow], width: int) -> Contexts:
    fillers = {"ids": PAD, "target": NOTHING, "kind": TEXT, "example": NOTHING, "position": 0, "seen": 0}
    fillers["gap"] = NOTHING
    return Contexts(**stacked([row.tokens for row in rows], width, fillers))


def stacked(rows: Sequence[Sequence[tuple[int, ...]]], width: int, fillers: dict[str, int]) -> dict[str, Tensor]:
    """Each part of the tokens in `rows` by name, as [B, width], padded with its filler."""
    filler = tuple(fillers.values())
    filled = (chain(row, repeat(filler, width - len(row))) for row in rows)
    # Read one by one: torch takes five times as long to look into lists of lists.
    numbers = np.fromiter(chain.from_iterable(chain.from_iterable(filled)), np.int64)
    parts = torch.from_numpy(numbers).view(len(rows), width, len(fillers))
    return dict(zip(fillers, parts.movedim(2, 0).contiguous(), strict=True))


def of_tensors(change: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """The same batch with `change` applied to each tensor."""
    if isinstance(batch, Tensor):
        return change(batch)
    return type(batch)(**{each.name: of_tensors(change, getattr(batch, each.name)) for each in fields(batch)})


def context_losses(
    network: GemmaNetwork, batch: Contexts, store: KeysAndValues | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean cross-entropies in nats: of every next token, of those in gaps, of widths, of the gaps' ends; 0 where a
    batch has none. `store` receives each layer's keys and values."""
    hidden = network.encode(batch.ids, batch.position, attend_within(network, batch, store))
    counted = batch.target != NOTHING
    text, gap, wide = (counted & (batch.kind == kind) for kind in (TEXT, GAP, WIDE))

    def loss(of: Tensor) -> Tensor:
        cap = network.module.final_logit_softcapping
        return capped_cross_entropy(hidden[of], network.module.lm_head.weight, batch.target[of], cap)

    of_gaps, share = loss(gap), gap.sum() / (text | gap).sum()
    return share * of_gaps + (1 - share) * loss(text), of_gaps, loss(wide), loss(gap & (batch.target == END))


def attend_within(network: GemmaNetwork, batch: Contexts, store: KeysAndValues | None = None) -> Attend:
    """Attention in which each token sees the part of its example that it may see, itself, and what precedes it in
    its gap."""
    slots = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    same = batch.example[:, :, None] == batch.example[:, None, :]
    before = slots[None, :] < slots[:, None]
    within = (batch.gap[:, :, None] == batch.gap[:, None, :]) & (batch.gap[:, :, None] != NOTHING) & before
    itself = slots[:, None] == slots[None, :]
    mask = same & (slots < batch.seen[:, :, None]) | within | itself
    near = mask & (batch.position[:, None, :] > batch.position[:, :, None] - network.config.sliding_window)
    full, sliding = (bias_of(network, each[:, None]) for each in (mask, near))

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if store is not None:
            store[index] = (key, value)
        return network.attention(query, key, value, sliding if network.sliding(index) else full)

    return attend


def bias_of(network: GemmaNetwork, mask: Tensor) -> Tensor:
    """A mask as a bias in the number format of the matrix products."""
    kind = mask.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else network.module.lm_head.weight.dtype
    return bias(mask, dtype)
