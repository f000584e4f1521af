"""First phase: the encoder learns to predict the next token, in the layout that it will serve.

A row is [<bos> language <suffix> what comes later <prefix> what comes first], a batch [B, N].
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.models.gemma_network import Network, attention
from engine.models.layout import Layout
from engine.train.loss import capped_cross_entropy
from engine.train.packed import PackedCorpus
from engine.train.presets import Preset

KeysAndValues = dict[int, tuple[Tensor, Tensor]]
"""By layer, [B, K, N, D] each."""
SUFFIX_SHARE = 0.5
"""Rows that begin with a later part of their document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTokens:
    """ids [B, N]"""

    ids: Tensor


def next_token_batch(corpus: PackedCorpus, preset: Preset, rng: random.Random) -> NextTokens:
    """A batch of rows cut from documents, chosen in proportion to their length."""
    layout = Layout()
    return NextTokens(ids=torch.tensor([_row(corpus, layout, preset.context, rng) for _ in range(preset.rows)]))


def next_token_loss(network: Network, batch: NextTokens) -> Tensor:
    """Mean cross-entropy in nats of each token given those before it."""
    hidden = encode_rows(network, batch.ids)
    targets = batch.ids[:, 1:].flatten()
    cap = network.module.final_logit_softcapping
    return capped_cross_entropy(hidden[:, :-1].flatten(0, 1), network.module.lm_head.weight, targets, cap)


def encode_rows(network: Network, ids: Tensor, store: KeysAndValues | None = None) -> Tensor:
    """Hidden states [B, N, E] of causal rows; `store` receives each layer's keys and values."""
    positions = torch.arange(ids.shape[1], device=ids.device)
    causal = positions[None, :] <= positions[:, None]
    near = causal & (positions[None, :] > positions[:, None] - network.config.sliding_window)
    full, sliding = (bias(network, mask[None, None]) for mask in (causal, near))

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if store is not None:
            store[index] = (key, value)
        return attention(query, key, value, sliding if network.sliding(index) else full)

    return network.encode(ids, positions.expand(ids.shape), attend)


def bias(network: Network, mask: Tensor) -> Tensor:
    """What a bool mask adds to the scores, in the format of the products: made once a batch, not in each layer."""
    kind = mask.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else network.module.lm_head.weight.dtype
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)


def choose_document(corpus: PackedCorpus, rng: random.Random) -> int:
    """A document, the longer the likelier."""
    ends = corpus.documents["token"]
    return int(np.searchsorted(ends, rng.randrange(len(corpus.tokens)), side="right")) - 1


def _row(corpus: PackedCorpus, layout: Layout, width: int, rng: random.Random) -> list[int]:
    row: list[int] = []
    while len(row) < width:
        index = choose_document(corpus, rng)
        body = corpus.ids(index)[1:-1].tolist()
        start = rng.randrange(max(1, len(body) - width // 2)) if rng.random() < 0.7 else 0
        later: list[int] = []
        end = start + width
        if rng.random() < SUFFIX_SHARE and len(body) > end:
            at = end + rng.randrange(min(64, len(body) - end))
            later = body[at : at + rng.randrange(16, width // 3)]
        row += layout.context(corpus.language(index), later, body[start:end])
    return row[:width]
