"""Adapters of random numbers, large enough to change what a model says."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.models.adapters.files import Adapter, Pair, write_adapter
from engine.models.adapters.low_rank import ADAPTED
from engine.models.adapters.metadata import AdapterFigures, AdapterMetadata, adapter_path
from engine.models.quantized.layers import PackedLinear

FIGURES = AdapterFigures(gaps=9, exact=0.5, similarity=0.75, clean=None, silent=0.0, forwards=3.5, p50_ms=12.0)
RANK, ALPHA = 4, 8.0


def drawn_pairs(model: Any, seed: int, rank: int = RANK, size: float = 0.1) -> dict[str, Pair]:
    """For all layers that tuning would teach."""
    generator = torch.Generator().manual_seed(seed)
    pairs: dict[str, Pair] = {}
    for name, layer in model.network.module.named_modules():
        if ADAPTED.search(name) and isinstance(layer, nn.Linear | PackedLinear):
            outputs, inputs = layer.weight.shape[-2:]
            a = torch.randn(rank, inputs, generator=generator) * inputs**-0.5
            b = size * torch.randn(outputs, rank, generator=generator)
            pairs[name] = a.bfloat16(), b.bfloat16()
    assert pairs
    return pairs


def metadata_for(base: Any, folder: Path, **facts: Any) -> AdapterMetadata:
    """As if `folder` had been learnt; `facts` replace what it says."""
    known: dict[str, Any] = {
        "model": base.info.name,
        "fingerprint": base.info.fingerprint,
        "folder": str(folder.resolve()),
        "commit": None,
        "created": 1.5,
        "rank": RANK,
        "alpha": ALPHA,
        "before": {"held out": FIGURES},
        "after": {"held out": FIGURES},
        "max_steps": base.info.sampling.max_steps,
        "sure": base.info.sampling.sure,
        "threshold": None,
        "on": True,
    }
    return AdapterMetadata(**(known | facts))


def put_adapter(base: Any, folder: Path, seed: int = 0, **facts: Any) -> Path:
    """An adapter where engines look for one; its directory."""
    metadata = metadata_for(base, folder, **facts)
    directory = adapter_path(folder, metadata.fingerprint)
    write_adapter(directory, Adapter(metadata=metadata, tensors=drawn_pairs(base, seed)))
    return directory
