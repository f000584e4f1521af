"""Writes a trained model as a directory for transformers' `from_pretrained` and the engine, with its model card."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from engine.learn.corpus import Manifest
from engine.learn.shapes import trained_parameters
from engine.learn.state import Point, TrainingState
from engine.learn.training import LOSSES
from engine.learn.training_recipe import Recipe
from engine.models.checkpoints.directory import METADATA_FILE, SINGLE_FILE, LengthStrategy
from engine.models.prompts.layout import BOS, EOS, PAD

CARD = "MODEL_CARD.md"
_ROWS = 12
"""About how many rows the table of losses has."""
_BODY = Path(__file__).with_name("card.md")


def export(
    state: TrainingState, recipe: Recipe, tokenizer: Path, out: Path, length: LengthStrategy = "predicted"
) -> None:
    """Write config, weights in bfloat16, tokenizer and metadata into the directory `out`, which is made."""
    out.mkdir(parents=True, exist_ok=True)
    # A copy: a run may go on after an export.
    module: Any = copy.deepcopy(state.module).to("cpu", torch.bfloat16)
    module.generation_config = _generation(recipe)
    module.config.dtype = torch.bfloat16
    module.save_pretrained(out)
    (out / SINGLE_FILE).chmod(0o644)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer / name, out / name)
    metadata = {
        "layout": "tokens",
        "noise": recipe.noise,
        "length": length,
        "widths": list(recipe.widths),
        "runs_on": recipe.runs_on,
        "context": max(recipe.contexts),
        "pinned": recipe.pinned,
        "edits": recipe.edit_share > 0,
        "sure": recipe.sure,
        "from_left": recipe.from_left,
        "mend_from": recipe.mend_from,
        "trained_tokens": state.tokens,
        "trained_steps": state.step,
    }
    (out / METADATA_FILE).write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")


def keep_threshold(out: Path, threshold: float) -> None:
    """Add to an exported model's metadata the least confidence of what is shown without being requested."""
    file = out / METADATA_FILE
    metadata = json.loads(file.read_text(encoding="utf-8")) | {"threshold": threshold}
    file.write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")


def _generation(recipe: Recipe) -> DiffusionGemmaGenerationConfig:
    """The released sampler, with the recipe's number of steps."""
    return DiffusionGemmaGenerationConfig(
        max_new_tokens=recipe.shape.canvas,
        max_denoising_steps=recipe.steps,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=0.25 if recipe.noise == "absorbing" else 0.1),
        t_min=0.4,
        t_max=0.8,
        stability_threshold=1,
        confidence_threshold=0.005,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )


def write_card(
    out: Path,
    *,
    recipe: Recipe,
    seed: int,
    state: TrainingState,
    curve: Sequence[Point],
    manifest: Manifest,
    evaluation: str = "",
) -> None:
    """Write the card into the directory `out`; `evaluation` is Markdown of what was measured."""
    body = _BODY.read_text(encoding="utf-8").format(
        parameters=sum(parameter.numel() for parameter in trained_parameters(state.module).values()),
        tokens=state.tokens,
        next_token_tokens=max((point.tokens for point in curve if "canvas" not in point.losses), default=0),
        steps=state.step,
        hours=state.seconds / 3600,
        noise=recipe.noise,
        context=max(recipe.contexts),
        seed=seed,
        pinned=recipe.pinned,
        losses=loss_table(curve),
        evaluation=f"\n## Evaluation\n\n{evaluation.strip()}\n" if evaluation else "",
        characters=manifest.characters("train"),
        held_out=manifest.characters("held-out"),
        held_out_packages=sum(entry.split == "held-out" for entry in manifest.packages),
        packages="\n".join(
            f"| {e.name} | {e.version} | {e.licence} | {e.files} | {e.characters:,} | {e.split} |"
            for e in sorted(manifest.packages, key=lambda entry: -entry.characters)
        ),
    )
    (out / CARD).write_text(body, encoding="utf-8")


def loss_table(curve: Sequence[Point]) -> str:
    """Losses on held-out packages by tokens read, as a table: the last ones and some before."""
    points = [point for point in curve if point.split == "held-out"]
    some = points[:: -max(1, len(points) // _ROWS)][::-1]
    rows = [
        f"| {point.tokens:,} | "
        + " | ".join(f"{point.losses[name]:.2f}" if name in point.losses else "-" for name in LOSSES)
        + " |"
        for point in some
    ]
    return "\n".join(
        ["| Tokens | canvas | next token | gaps alone | widths | ends |", "|--:|--:|--:|--:|--:|--:|", *rows]
    )
