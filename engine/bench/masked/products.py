"""The matrix products of one step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.bench.products import PROJECTIONS, Product, attention_products, linear, linears
from engine.models.kv_cache import Part
from engine.models.masked.network import MaskedNetwork


def products_of(network: MaskedNetwork, parts: Sequence[Part]) -> list[Product]:
    """Every product of a step that computes `parts`: weights, attention, and the head where it is asked."""
    tokens, asked = (sum(map(len, each)) for each in ([part.places for part in parts], [part.asked for part in parts]))
    found: list[Product] = []
    with torch.inference_mode():
        for index, layer in enumerate(network.layers):
            found += linears(layer.self_attn, tokens, PROJECTIONS[:-1])
            for part in parts:
                size = network.config.head_size
                found += attention_products(layer.self_attn, size, 1, len(part.places), len(part.ids))
            left = asked if index == len(network.layers) - 1 else tokens
            found += linears(layer.self_attn, left, PROJECTIONS[-1:])
            found += linears(layer.mlp, left, ("gate_proj", "up_proj", "down_proj"))
        found.append(linear(network.module.lm_head.weight, asked))
    return found
