"""A trained model as a directory that transformers' `from_pretrained` and the engine load."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from engine.checkpoints.directory import METADATA_FILE, SINGLE_FILE, LengthStrategy
from engine.models.prompts.layout import BOS, EOS, PAD
from engine.train.presets import Preset
from engine.train.state import State


def export(state: State, preset: Preset, tokenizer: Path, out: Path, length: LengthStrategy) -> None:
    """Write config, weights in bfloat16, tokenizer and facts into the directory `out`, which is made."""
    out.mkdir(parents=True, exist_ok=True)
    # A copy: a run may go on after an export.
    module: Any = copy.deepcopy(state.module).to("cpu", torch.bfloat16)
    module.generation_config = _generation(preset)
    module.config.dtype = torch.bfloat16
    module.save_pretrained(out)
    (out / SINGLE_FILE).chmod(0o644)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer / name, out / name)
    facts = _facts(preset, length, state)
    (out / METADATA_FILE).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _facts(preset: Preset, length: LengthStrategy, state: State) -> dict[str, Any]:
    return {
        "layout": "tokens",
        "noise": preset.noise,
        "length": length,
        "widths": list(preset.widths),
        "runs_on": preset.runs_on,
        "context": max(preset.contexts),
        "pinned": preset.pinned,
        "trained_tokens": state.tokens,
        "trained_steps": state.step,
    }


def _generation(preset: Preset) -> DiffusionGemmaGenerationConfig:
    """The released sampler, with the preset's number of steps."""
    absorbing = preset.noise == "absorbing"
    return DiffusionGemmaGenerationConfig(
        max_new_tokens=preset.shape.canvas,
        max_denoising_steps=preset.steps,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.25 if absorbing else 0.1),
        t_min=0.4,
        t_max=0.8,
        stability_threshold=1,
        confidence_threshold=0.005,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
