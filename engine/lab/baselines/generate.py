"""The baseline `generate`: transformers' own generation with the same weights."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from engine.common.request import Filled, FillRequest
from engine.lab.baselines.left_to_right import answered, cut
from engine.lab.baselines.released_class import released_class
from engine.models.base import ModelInfo, Sampling
from engine.models.gemma.model import DiffusionGemma
from engine.models.prompts.layout import context_ids

_NEVER = 1e-12
"""Nats; no canvas ever reaches it."""
_SUFFIX_SHARE, _PREFIX_SHARE = 0.3, 0.6
"""Shares of the context."""


def fill_by_generate(model: DiffusionGemma, request: FillRequest) -> Filled:
    """A fill by one canvas of `generate`, cut where it meets the suffix. `generate` can't pin a suffix, so the suffix
    stands before the prefix in the context."""
    module = released_class(model.network)
    began = time.perf_counter()
    said = generate(module, model.info, _all_known(model, request), model.info.sampling)
    text = cut(model.detokenize([token for token in said if token != model.info.pad_id]), request.suffix)
    steps = model.info.sampling.max_steps
    return answered(model, text, len(model.tokenize(text)), width=len(said), forwards=steps, began=began)


def generate(module: Any, info: ModelInfo, ids: list[int], sampling: Sampling, *, in_full: bool = False) -> list[int]:
    """The tokens of one canvas after `ids`. `in_full`: take all of its steps, even if it settles before."""
    config: Any = DiffusionGemmaGenerationConfig(
        max_new_tokens=info.canvas_length,
        max_denoising_steps=sampling.max_steps,
        t_min=sampling.t_min,
        t_max=sampling.t_max,
        stability_threshold=sampling.stability_threshold,
        confidence_threshold=_NEVER if in_full else sampling.confidence_threshold,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=sampling.entropy_bound),
        pad_token_id=info.pad_id,
        eos_token_id=None,
        return_dict_in_generate=True,
    )
    inputs = torch.tensor([ids], device=module.device)
    return module.generate(inputs, generation_config=config).sequences[0, len(ids) :].tolist()


def _all_known(model: DiffusionGemma, request: FillRequest) -> list[int]:
    """A context with the prefix and the suffix."""
    if model.info.instructions:
        return list(model.prompt(request).context)
    limit = model.info.context_limit
    after = model.tokenize(request.suffix)[: int(_SUFFIX_SHARE * limit)]
    before = model.tokenize(request.prefix)[-int(_PREFIX_SHARE * limit) :]
    return context_ids(request.language, after, before)
