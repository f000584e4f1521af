"""The matrix products of one denoise step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bench.products import PROJECTIONS, Product, attention_products, linear, linears, numbers_like
from engine.models.base import Rows
from engine.models.gemma.network import GemmaNetwork
from engine.models.kv_cache import Part

_MLP = ("gate_proj", "up_proj", "down_proj")


def products_of(network: GemmaNetwork, rows: Rows, parts: Sequence[Part]) -> list[Product]:
    """Every product of a step that computes `parts` of `rows`: weights, attention, experts, head, and the signal."""
    tokens, wanted = sum(len(part.places) for part in parts), int(rows.open.sum())
    found: list[Product] = []
    with torch.inference_mode():
        found += linears(network.decoder.self_conditioning, tokens, _MLP)
        for index, layer in enumerate(network.decoder.layers):
            block = layer.self_attn
            found += linears(block, tokens, PROJECTIONS[:-1])
            for part in parts:
                before = network.seen(index, part.start)
                found += attention_products(block, block.head_dim, 1, len(part.places), before + len(part.ids))
            told = wanted if index == len(network.dense) - 1 else tokens
            found += linears(block, told, PROJECTIONS[-1:])
            found += linears(layer.mlp, told, _MLP)
            if not network.dense[index]:
                found += _experts(layer, told, network.config.top_k_experts)
        found.append(_averaged(network.decoder.embed_tokens.weight, wanted))
        found.append(linear(network.module.lm_head.weight, wanted))
    return found


def _averaged(table: Tensor, wanted: int) -> Product:
    """Embeddings by their probabilities, for the signal."""
    weights = numbers_like(table, wanted, table.shape[0])
    return Product(run=lambda: weights @ table, weight_nbytes=table.nbytes)


def _experts(layer: Any, tokens: int, chosen: int) -> Iterator[Product]:
    """As if the router spread the tokens evenly."""
    yield from linears(layer.router, tokens, ("proj",))
    for weights in (layer.experts.gate_up_proj, layer.experts.down_proj):
        hit = min(weights.shape[0], tokens * chosen)
        each = -(-tokens * chosen // hit)
        held, states = weights[:hit], numbers_like(weights, hit, each, weights.shape[2])
        yield Product(run=_batched(states, held), weight_nbytes=held.nbytes)


def _batched(states: Tensor, weights: Tensor) -> Callable[[], Tensor]:
    if weights.device.type == "cpu":
        # Batched products in bfloat16 are slower there than one after the other.
        return lambda: torch.stack([F.linear(state, weight) for state, weight in zip(states, weights, strict=True)])
    return lambda: torch.bmm(states, weights.transpose(1, 2))
