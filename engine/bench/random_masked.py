"""Models of the family `masked` with random weights: speed can be measured without a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.bench.numbered import NumberedPrompt
from engine.bench.random_weights import layers_asked, random_module, shared_facts
from engine.checkpoints.directory import LengthStrategy
from engine.core.names import Device
from engine.models.base import ModelInfo, Noise
from engine.models.masked.config import Architecture
from engine.models.masked.model import Masked, sampling_of, widths_of
from engine.models.masked.network import MaskedModule, MaskedNetwork
from engine.models.masked.published import PUBLISHED

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
_HALF = replace(_DREAM, vocab=151_936, hidden=896, intermediate=4864, layers=24, heads=14, kv_heads=2, tied=True)
"""Qwen2.5-Coder 0.5B's, which Open-dCoder was made from."""
_SMALL = replace(_HALF, kind="llama", vocab=6144, hidden=256, intermediate=640, layers=6, heads=4, rope_theta=1e4)
_SHAPES = {
    "dreamon": (_DREAM, "DreamOn 7B"),
    "dream-layers": (_DREAM, "Dream-Coder 7B"),
    "dcoder-layers": (_HALF, "Open-dCoder 0.5B"),
    "masked-small": (_SMALL, "Open-dCoder 0.5B"),
}
"""And the published model whose facts go with it."""


def random_masked(shape: str, device: Device, seed: int) -> Masked:
    """Raises BadInput for too many layers, ModelError without memory."""
    architecture, title = _SHAPES[shape.partition("=")[0]]
    if "=" in shape:
        architecture = replace(architecture, layers=layers_asked(shape, architecture.layers))
    module = random_module(shape, device, seed, lambda: MaskedModule(architecture))
    published = next(each for each in PUBLISHED if each.title == title)
    length: LengthStrategy = "expand" if published.expand else "calibrated"
    # Which token means what is of no matter here: those at the vocabulary's end are the special ones.
    mask, expand = architecture.vocab - 1, architecture.vocab - 2
    facts = ModelInfo(
        **shared_facts(shape, module),
        family="masked",
        length=length,
        noise=Noise(mask_id=mask, vocab_size=architecture.vocab),
        sampling=sampling_of(published),
        forbidden_ids=(mask, expand) if published.expand else (mask,),
        canvas_length=published.context // 2,
        widths=widths_of(length),
        context_limit=published.context,
        instructions=False,
        expand_id=expand if published.expand else None,
        requests_first=published.requests_first,
    )
    # As the family's own prompt shares out what can be read.
    prompt: Any = NumberedPrompt(architecture.vocab, limit=published.context // 2, pinned=published.context // 4)
    return Masked(MaskedNetwork(module, architecture), facts, prompt, shifted=published.shifted)
