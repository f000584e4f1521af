"""The matrix products of one denoise step, alone: what a step costs at the least on a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.base import Rows
from engine.models.diffusion_gemma import DiffusionGemma


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product, and the bytes of weights that it reads."""

    run: Callable[[], Tensor]
    weight_nbytes: int


def products_of(model: DiffusionGemma, rows: Rows) -> list[Product]:
    """Every product of one step over `rows`: weights, attention, experts, head, and the self-conditioning signal."""
    batch, length = rows.canvas.shape
    tokens, wanted = batch * length, int(rows.open.sum())
    network = model.network
    context, window = rows.contexts[0].length, network.config.sliding_window - 1
    found: list[Product] = []
    with torch.inference_mode():
        found += _weights(network.decoder.self_conditioning, tokens, ("gate_proj", "up_proj", "down_proj"))
        for index, layer in enumerate(network.decoder.layers):
            seen = min(context, window) if network.sliding(index) else context
            found += _attention(layer.self_attn, batch, length, seen)
            found += _weights(layer.mlp, tokens, ("gate_proj", "up_proj", "down_proj"))
            if not network.dense[index]:
                found += _experts(layer, tokens, network.config.top_k_experts)
        table: Tensor = network.decoder.embed_tokens.weight
        found.append(_product(_like(table, wanted, table.shape[0]), table, transposed=False))
        found.append(_product(_like(table, wanted, table.shape[1]), network.module.lm_head.weight))
    return found


def run_all(products: list[Product]) -> None:
    """One after the other, as a step must."""
    with torch.inference_mode():
        for product in products:
            product.run()


def _weights(block: Any, tokens: int, names: tuple[str, ...]) -> Iterator[Product]:
    for name in names:
        linear = getattr(block, name)
        if linear is not None:
            yield _product(_like(linear.weight, tokens, linear.weight.shape[1]), linear.weight)


def _attention(block: Any, batch: int, length: int, seen: int) -> Iterator[Product]:
    yield from _weights(block, batch * length, ("q_proj", "k_proj", "v_proj", "o_proj"))
    size = block.head_dim
    heads, kv_heads = (linear.weight.shape[0] // size for linear in (block.q_proj, block.k_proj))
    weight = block.q_proj.weight
    query = _like(weight, batch * kv_heads, heads // kv_heads * length, size)
    keys = _like(weight, batch * kv_heads, seen + length, size)
    scores = _like(weight, batch * kv_heads, heads // kv_heads * length, seen + length)
    yield Product(run=lambda: query @ keys.transpose(1, 2), weight_nbytes=0)
    yield Product(run=lambda: scores @ keys, weight_nbytes=0)


def _experts(layer: Any, tokens: int, chosen: int) -> Iterator[Product]:
    """As if the router spread the tokens evenly."""
    yield from _weights(layer.router, tokens, ("proj",))
    for weights in (layer.experts.gate_up_proj, layer.experts.down_proj):
        hit = min(weights.shape[0], tokens * chosen)
        each = -(-tokens * chosen // hit)
        held, states = weights[:hit], _like(weights, hit, each, weights.shape[2])
        yield Product(run=_batched(states, held), weight_nbytes=held.nbytes)


def _batched(states: Tensor, weights: Tensor) -> Callable[[], Tensor]:
    if weights.device.type == "cpu":
        # Batched products in bfloat16 are slower there than one after the other.
        return lambda: torch.stack([F.linear(state, weight) for state, weight in zip(states, weights, strict=True)])
    return lambda: torch.bmm(states, weights.transpose(1, 2))


def _product(states: Tensor, weight: Tensor, *, transposed: bool = True) -> Product:
    run = (lambda: F.linear(states, weight)) if transposed else (lambda: states @ weight)
    return Product(run=run, weight_nbytes=weight.nbytes)


def _like(weight: Tensor, *shape: int) -> Tensor:
    return torch.rand(shape, dtype=torch.float32, device=weight.device).to(weight.dtype)
