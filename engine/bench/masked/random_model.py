"""Models of this family in any shape with random weights: speed can be measured without a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from engine.bench.numbered import NumberedPrompt
from engine.bench.random_weights import check_room, layers_asked, made_in, place_of, randomise
from engine.checkpoints.directory import LengthStrategy
from engine.checkpoints.placement import GPU_DTYPE, cpu_dtype
from engine.core.names import Device
from engine.models.base import ModelInfo, Noise
from engine.models.masked.config import Architecture
from engine.models.masked.model import Masked, sampling_of, widths_of
from engine.models.masked.network import MaskedModule, MaskedNetwork
from engine.models.masked.published import PUBLISHED, Published


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    architecture: Architecture
    title: str
    """Of the published model whose facts go with it."""


_DREAM = Architecture(
    kind="qwen2",
    vocab=152_064,
    hidden=3584,
    intermediate=18_944,
    layers=28,
    heads=28,
    kv_heads=4,
    norm_eps=1e-6,
    rope_theta=1e6,
    tied=False,
)
"""Qwen2.5 7B's, which the Dream family and DiffuCoder were made from."""
_HALF = Architecture(
    kind="qwen2",
    vocab=151_936,
    hidden=896,
    intermediate=4864,
    layers=24,
    heads=14,
    kv_heads=2,
    norm_eps=1e-6,
    rope_theta=1e6,
    tied=True,
)
"""Qwen2.5-Coder 0.5B's, which Open-dCoder was made from."""
_SMALL = Architecture(
    kind="llama",
    vocab=6144,
    hidden=256,
    intermediate=640,
    layers=6,
    heads=4,
    kv_heads=2,
    norm_eps=1e-6,
    rope_theta=1e4,
    tied=True,
)
_SHAPES = {
    "dreamon": _Shape(architecture=_DREAM, title="DreamOn 7B"),
    "dream-layers": _Shape(architecture=_DREAM, title="Dream-Coder 7B"),
    "dcoder-layers": _Shape(architecture=_HALF, title="Open-dCoder 0.5B"),
    "masked-small": _Shape(architecture=_SMALL, title="Open-dCoder 0.5B"),
}


def random_model(shape: str, device: Device, seed: int) -> Masked:
    """A model named by one of the family's shapes. Raises BadInput for too many layers, ModelError without memory."""
    asked = _SHAPES[shape.partition("=")[0]]
    architecture = asked.architecture
    if "=" in shape:
        architecture = replace(architecture, layers=layers_asked(shape, architecture.layers))
    place = place_of(device)
    with torch.device("meta"):
        sketch: Any = MaskedModule(architecture)
    size = sum(parameter.numel() for parameter in sketch.parameters())
    dtype = cpu_dtype(size) if place == "cpu" else GPU_DTYPE
    check_room(shape, size * dtype.itemsize, place)
    with made_in(dtype, place):
        module: Any = MaskedModule(architecture)
    randomise(module, seed)
    published = next(each for each in PUBLISHED if each.title == asked.title)
    facts = _facts(f"random {shape}", published, architecture.vocab, size, place, dtype)
    # As the family's own prompt shares out what can be read.
    prompt: Any = NumberedPrompt(architecture.vocab, limit=published.context // 2, pinned=published.context // 4)
    return Masked(MaskedNetwork(module.eval(), architecture), facts, prompt, shifted=published.shifted)


def _facts(name: str, published: Published, vocab: int, size: int, place: str, dtype: torch.dtype) -> ModelInfo:
    """Which token means what is of no matter here: those at the vocabulary's end are the special ones."""
    length: LengthStrategy = "expand" if published.expand else "calibrated"
    mask, expand = vocab - 1, vocab - 2
    return ModelInfo(
        name=name,
        family="masked",
        parameters=size,
        device=place,
        dtype=str(dtype).removeprefix("torch."),
        length=length,
        noise=Noise(mask_id=mask, vocab_size=vocab),
        sampling=sampling_of(published),
        pad_id=0,
        forbidden_ids=(mask, expand) if published.expand else (mask,),
        canvas_length=published.context // 2,
        widths=widths_of(length),
        context_limit=published.context,
        instructions=False,
        expand_id=expand if published.expand else None,
        requests_first=published.requests_first,
    )
