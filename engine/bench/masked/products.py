"""The matrix products of one step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.bench.products import PROJECTIONS, Product, attention_products, linear, linears
from engine.models.masked.memory import Window
from engine.models.masked.network import Network


def products_of(network: Network, windows: Sequence[Window]) -> list[Product]:
    """Every product of a step that computes `windows`: weights, attention, and the head where it is asked."""
    batch = len(windows)
    length = max(window.end - window.start for window in windows)
    seen = max(window.before for window in windows) + max(window.behind for window in windows) + length
    found: list[Product] = []
    with torch.inference_mode():
        for layer in network.layers:
            found += linears(layer.self_attn, batch * length, PROJECTIONS)
            found += attention_products(layer.self_attn, network.head_size, batch, length, seen)
            found += linears(layer.mlp, batch * length, ("gate_proj", "up_proj", "down_proj"))
        found.append(linear(network.module.lm_head.weight, sum(len(window.line.asked) for window in windows)))
    return found
