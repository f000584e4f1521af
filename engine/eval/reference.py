"""transformers' own `generate` on the same weights, asked for what we ask for: what a fill is measured against."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from engine.eval.left_to_right import causal, cut
from engine.models.base import Model, Sampling
from engine.models.diffusion_gemma import DiffusionGemma
from engine.models.layout import Layout
from engine.models.window import with_line_feeds
from engine.request import Candidate, Filled, FillRequest, Timings

_NEVER = 1e-12
"""Nats; no canvas is ever as sure as this."""
_SUFFIX_SHARE, _PREFIX_SHARE = 0.3, 0.6
"""Of the context."""


def fill_by_generate(model: Model, request: FillRequest) -> Filled:
    """One canvas of `generate`, cut like a text read left to right; it can't hold a suffix in place, so it reads it
    before the prefix. Raises BadInput for a model of another family."""
    own = causal(model)
    ids = _prompt(own, request)
    began = time.perf_counter()
    said = generate(own, ids, own.facts.sampling)
    ms = (time.perf_counter() - began) * 1000
    used = [token for token in said if token != own.facts.pad_id]
    text = cut(own.detokenize(used), request.suffix)
    steps = own.facts.sampling.max_steps
    return Filled(
        model=own.facts.name,
        device=own.facts.device,
        candidates=(Candidate(text=text, tokens=len(own.tokenize(text)), confidence=1.0, score=0.0),) if text else (),
        width=len(said),
        steps=steps,
        forwards=steps,
        ms=Timings(total=ms),
    )


def generate(model: DiffusionGemma, ids: list[int], sampling: Sampling, *, in_full: bool = False) -> list[int]:
    """The tokens of one canvas behind `ids`. `in_full`: all of its steps, settled or not."""
    config: Any = DiffusionGemmaGenerationConfig(
        max_new_tokens=model.facts.canvas_length,
        max_denoising_steps=sampling.max_steps,
        t_min=sampling.t_min,
        t_max=sampling.t_max,
        stability_threshold=sampling.stability_threshold,
        confidence_threshold=_NEVER if in_full else sampling.confidence_threshold,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=sampling.entropy_bound),
        pad_token_id=model.facts.pad_id,
        eos_token_id=None,
        return_dict_in_generate=True,
    )
    module: Any = model.network.module
    inputs = torch.tensor([ids], device=model.network.device)
    return module.generate(inputs, generation_config=config).sequences[0, len(ids) :].tolist()


def _prompt(model: DiffusionGemma, request: FillRequest) -> list[int]:
    """Everything that is known, the suffix included, as context."""
    if model.facts.instructions:
        return list(model.prompt(request).context)
    limit = model.facts.context_limit
    after = model.tokenize(with_line_feeds(request.suffix))[: int(_SUFFIX_SHARE * limit)]
    before = model.tokenize(with_line_feeds(request.prefix))[-int(_PREFIX_SHARE * limit) :]
    return list(Layout().context(request.language, after, before))
