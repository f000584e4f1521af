"""Matrix products alone: what a step costs at the least on a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product, and the bytes of weights that it reads."""

    run: Callable[[], Tensor]
    weight_nbytes: int


def run_all(products: Iterable[Product]) -> None:
    """One after the other, as a step must."""
    with torch.inference_mode():
        for product in products:
            product.run()


def linear(weight: Tensor, tokens: int) -> Product:
    """States of `tokens` by a weight [out, in]."""
    states = numbers_like(weight, tokens, weight.shape[1])
    return Product(run=lambda: F.linear(states, weight), weight_nbytes=weight.nbytes)


def linears(block: Any, tokens: int, names: Iterable[str]) -> Iterator[Product]:
    """States of `tokens` by each of the block's named layers that it has."""
    for name in names:
        layer = getattr(block, name)
        if layer is not None:
            yield linear(layer.weight, tokens)


PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
"""The weights of attention."""


def attention_products(block: Any, size: int, batch: int, length: int, seen: int) -> Iterator[Product]:
    """Of `length` positions a row, which look at `seen` ones, without PROJECTIONS; `size`: features of a head."""
    heads, kv_heads = (layer.weight.shape[0] // size for layer in (block.q_proj, block.k_proj))
    weight = block.q_proj.weight
    query = numbers_like(weight, batch * kv_heads, heads // kv_heads * length, size)
    keys = numbers_like(weight, batch * kv_heads, seen, size)
    scores = numbers_like(weight, batch * kv_heads, heads // kv_heads * length, seen)
    yield Product(run=lambda: query @ keys.transpose(1, 2), weight_nbytes=0)
    yield Product(run=lambda: scores @ keys, weight_nbytes=0)


def numbers_like(weight: Tensor, *shape: int) -> Tensor:
    """Random numbers in the format and at the place of `weight`."""
    return torch.rand(shape, dtype=torch.float32, device=weight.device).to(weight.dtype)
