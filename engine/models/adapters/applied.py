"""Applies an adapter to a model. Layers with pairs get weights of their own; the tuned model shares all others with the
base."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from engine.common.errors import ModelError
from engine.models.adapters.files import Adapter, Pair
from engine.models.adapters.low_rank import ADAPTED, LowRankLinear
from engine.models.base import Adaptable, ModelInfo, check_info
from engine.models.products import in_bfloat16
from engine.models.quantized.layers import PackedLinear

MOST_MERGED_NBYTES = 256 << 20
"""Most bytes of weights that are kept once more for an adapter. Above that, and where weights are packed, pairs are
multiplied separately."""

M = TypeVar("M", bound=Adaptable)


def with_adapter(model: M, adapter: Adapter) -> M:
    """The model with an adapter. Raises ModelError where the adapter does not fit."""
    metadata, own = adapter.metadata, model.info
    info = replace(
        own,
        adapter=metadata.folder,
        sampling=replace(own.sampling, max_steps=metadata.max_steps, sure=metadata.sure),
        threshold=own.threshold if metadata.threshold is None else metadata.threshold,
    )
    check_info(info)
    return with_pairs(model, adapter.tensors, metadata.alpha / metadata.rank, info)


@torch.inference_mode()
def with_pairs(model: M, pairs: Mapping[str, Pair], scale: float, info: ModelInfo | None = None) -> M:
    """The model with W + scale * B A in place of the weights W of each layer that `pairs` name. The base stays as it
    is, and neither uses contexts that the other has encoded. Raises ModelError where a pair fits no layer."""
    module = twin(model.network.module)
    layers = {name: _layer(module, name, pair) for name, pair in pairs.items()}
    merged_nbytes = sum(layer.weight.nbytes for layer in layers.values() if isinstance(layer, nn.Linear))
    merges = merged_nbytes <= MOST_MERGED_NBYTES
    for name, (a, b) in pairs.items():
        layer = layers[name]
        if isinstance(layer, nn.Linear) and merges:
            layer.weight = nn.Parameter(_merged(layer.weight, a, b, scale), requires_grad=False)
            continue
        above, _, own = name.rpartition(".")
        setattr(module.get_submodule(above), own, LowRankLinear(layer, a, b, scale).requires_grad_(False))
    return model.over(module, info or model.info)


def twin(module: nn.Module) -> Any:
    """A second module that shares the tensors of the first."""
    together = (part.__dict__["together"] for part in module.modules() if "together" in part.__dict__)
    shared = (*module.parameters(), *module.buffers(), *together)
    return deepcopy(module, {id(each): each for each in shared})


def _layer(module: nn.Module, name: str, pair: Pair) -> Any:
    try:
        layer = module.get_submodule(name) if ADAPTED.search(name) else None
    except AttributeError:
        layer = None
    if isinstance(layer, nn.Linear | PackedLinear):
        outputs, inputs = layer.weight.shape[-2:]
        if (pair[0].shape[1], pair[1].shape[0]) == (inputs, outputs):
            return layer
    raise ModelError(f"An adapter has a pair for {name}, which the model has no such layer for: train it again.")


def _merged(weight: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
    a, b = (each.to(weight.device).float() for each in (a, b))
    merged = weight.float() + scale * (b @ a)
    # What came in bfloat16 stays so: products in it may be several times as fast.
    return (merged if in_bfloat16(weight) is None else merged.bfloat16()).to(weight.dtype)
