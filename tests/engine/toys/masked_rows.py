"""Gaps in programs of the toy language: [<bos> prefix | gap | suffix <eos>]."""

from __future__ import annotations

import random

from engine.learn.masked_rows import ControlTokens, MaskedRows, RowOfTruth, hidden_gap, masked_row, masked_rows
from engine.learn.packed import PackedCorpus
from engine.learn.tokenizer import encode
from engine.models.prompts.layout import BOS, EOS, MASK, PAD, RESERVED

EXPAND = RESERVED - 1
"""Asks for two slots; EOS in a gap gives its slot up."""
TOKENS = ControlTokens(mask=MASK, end=EOS, expand=EXPAND)
LONGEST = 44
"""Tokens of a gap, at most."""
BEFORE, BEHIND = 90, 46
"""Tokens around a gap, at most."""


def toy_rows(corpus: PackedCorpus, rng: random.Random, rows: int) -> MaskedRows:
    """A batch of gaps in documents."""
    return masked_rows([_row(corpus, rng) for _ in range(rows)], PAD)


def _row(corpus: PackedCorpus, rng: random.Random) -> RowOfTruth:
    text = encode(corpus.tokenizer, corpus.text(rng.randrange(len(corpus))))
    size = rng.randint(1, min(LONGEST, len(text) - 2))
    start = rng.randint(1, len(text) - size - 1)
    before = text[max(0, start - rng.randint(BEFORE // 4, BEFORE)) : start]
    behind = [*text[start + size :], EOS][:BEHIND]
    return masked_row([BOS, *before], hidden_gap(text[start : start + size], TOKENS, rng), behind)
