"""The causal encoder as an autoregressive model."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from engine.models.gemma.network import Network, attention
from engine.models.kv_cache import EncodedContext, window_mask


@torch.inference_mode()
def next_tokens(network: Network, context: EncodedContext) -> Iterator[int]:
    """Greedy next tokens behind `context`, with a cache of keys and values, without end."""
    # The cached context stays as it is; the tokens to come are appended to a copy.
    start = context.length - 1
    store, last = context.store.copy(start), context.store.ids[start]
    while True:
        tokens = torch.tensor([[last]], device=network.device)
        positions = torch.tensor([[start]], device=network.device)

        def attend(index: int, query: Tensor, key: Tensor, value: Tensor, start: int = start) -> Tensor:
            keys, values = store.update(start, index, key, value)
            window = network.config.sliding_window if network.sliding(index) else None
            first = max(0, start - window + 1) if window else 0
            mask = window_mask(start, 1, first, window, query.device)
            return attention(query, keys[:, :, first:], values[:, :, first:], mask)

        last = int(network.logits(network.encode(tokens, positions, attend))[0, -1].argmax())
        start += 1
        yield last
