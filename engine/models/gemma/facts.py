"""What a checkpoint of this family says about itself, for the loop and the tools."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from engine.checkpoints.directory import Checkpoint, LengthStrategy, read_files
from engine.checkpoints.placement import Placement
from engine.models.base import Facts, Noise, Sampling
from engine.models.prompts.layout import END, MASK, PAD
from engine.models.vocabulary import Vocabulary

RELEASED = Sampling(
    max_steps=48, t_min=0.4, t_max=0.8, entropy_bound=0.1, stability_threshold=1, confidence_threshold=0.005
)
"""Defaults of transformers' DiffusionGemmaGenerationConfig."""
_DISCOVER_WIDTHS = (24, 96)
_CONTEXT_LIMIT = 4096
"""Tokens of context by default; a longer one costs memory and time, and helps little at a cursor."""


def read_facts(checkpoint: Checkpoint, placement: Placement, module: Any, vocabulary: Vocabulary) -> Facts:
    """Of a checkpoint whose weights are loaded."""
    told = read_files(checkpoint.path, checkpoint.name).told
    text = module.config.text_config
    absorbing = told.get("noise") == "absorbing"
    length: LengthStrategy = checkpoint.length
    asks = length == "asked"
    return Facts(
        name=checkpoint.name,
        family=checkpoint.family,
        parameters=checkpoint.parameters,
        device=placement.device,
        dtype=str(placement.dtype).removeprefix("torch."),
        length=length,
        noise=Noise(mask_id=MASK if absorbing else None, vocab_size=text.vocab_size),
        sampling=_sampling(module.generation_config),
        pad_id=PAD,
        forbidden_ids=tuple(token for token in vocabulary.empty if token != PAD),
        canvas_length=module.config.canvas_length,
        widths=tuple(told.get("widths", _DISCOVER_WIDTHS)),
        runs_on=told.get("runs_on", False),
        end_id=END if asks else None,
        context_limit=told.get("context", _CONTEXT_LIMIT),
        instructions=told.get("layout") != "tokens",
    )


def _sampling(published: GenerationConfig) -> Sampling:
    def setting(name: str) -> Any:
        value = getattr(published, name, None)
        return getattr(RELEASED, name) if value is None else value

    sampler = getattr(published, "sampler_config", None)
    bound = sampler.get("entropy_bound") if isinstance(sampler, dict) else getattr(sampler, "entropy_bound", None)
    steps = getattr(published, "max_denoising_steps", None)
    return Sampling(
        max_steps=RELEASED.max_steps if steps is None else steps,
        t_min=setting("t_min"),
        t_max=setting("t_max"),
        entropy_bound=RELEASED.entropy_bound if bound is None else bound,
        stability_threshold=setting("stability_threshold"),
        confidence_threshold=setting("confidence_threshold"),
    )
