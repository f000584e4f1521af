"""Rows for masked models: [<bos> prefix | gap of masks | suffix <eos>], whose gaps are too narrow or too wide.

What is hidden of a gap is a mask each, or one mask for two and more tokens, which must ask for more room; what is left
over at its end must give itself up. The method: DreamOn (arXiv:2602.01326), section 3.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models.prompts.layout import BOS, EOS, MASK, PAD, RESERVED
from engine.train.packed import PackedCorpus
from engine.train.tokenizer import encode

EXPAND = RESERVED - 1
"""Asks for two slots; EOS in a gap gives its slot up."""
LONGEST, LEFT_OVER = 44, 40
"""Tokens of a gap, and slots too many, at most."""
BEFORE, BEHIND = 90, 46
"""Tokens around a gap, at most."""
MERGED = 0.95
"""The highest likelihood that a mask swallows its neighbour."""
NOTHING = -100
"""The truth where no loss is taken: what cross-entropy ignores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRows:
    """ids, truth [B, T]; lengths [B]."""

    ids: Tensor
    truth: Tensor
    lengths: Tensor


def masked_rows(corpus: PackedCorpus, rng: random.Random, rows: int) -> MaskedRows:
    """A batch of gaps in documents."""
    made = [_row(corpus, rng) for _ in range(rows)]
    width = max(len(ids) for ids, _ in made)
    return MaskedRows(
        ids=torch.tensor([ids + [PAD] * (width - len(ids)) for ids, _ in made]),
        truth=torch.tensor([truth + [NOTHING] * (width - len(truth)) for _, truth in made]),
        lengths=torch.tensor([len(ids) for ids, _ in made]),
    )


def _row(corpus: PackedCorpus, rng: random.Random) -> tuple[list[int], list[int]]:
    text = encode(corpus.tokenizer, corpus.text(rng.randrange(len(corpus))))
    size = rng.randint(1, min(LONGEST, len(text) - 2))
    start = rng.randint(1, len(text) - size - 1)
    before = text[max(0, start - rng.randint(BEFORE // 4, BEFORE)) : start]
    behind = [*text[start + size :], EOS][:BEHIND]
    gap, truth = hidden_gap(text[start : start + size], rng)
    return (
        [BOS, *before, *gap, *behind],
        [NOTHING] * (1 + len(before)) + truth + [NOTHING] * len(behind),
    )


def hidden_gap(tokens: Sequence[int], rng: random.Random) -> tuple[list[int], list[int]]:
    """A gap as the model sees it, and what each of its masks should say."""
    # Half of the gaps as a fill begins: nothing of them is known.
    level = 1.0 if rng.random() < 0.5 else rng.random()
    kind = rng.choice(("fitting", "wide", "narrow"))
    spare = rng.randint(1, LEFT_OVER) if kind == "wide" else 0
    merging = rng.uniform(0, MERGED) if kind == "narrow" else 0.0
    masked = [rng.random() < level for _ in tokens]
    gap: list[int] = []
    truth: list[int] = []
    at = 0
    while at < len(tokens):
        end = at + 1
        while masked[at] and end < len(tokens) and masked[end] and rng.random() < merging:
            end += 1
        gap.append(MASK if masked[at] else tokens[at])
        truth.append((EXPAND if end > at + 1 else tokens[at]) if masked[at] else NOTHING)
        at = end
    return gap + [MASK] * spare, truth + [EOS] * spare
