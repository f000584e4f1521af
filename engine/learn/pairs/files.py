"""Writes pairs as they are shipped: safetensors in int8 with a scale a row, and a JSON file of base and recipe."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.learn.pairs.recipe import PairsRecipe
from engine.models.causal.pairs import METADATA, SCALE, WEIGHTS

_MOST = 127
"""The largest int8."""


def write_pairs(
    trained: Mapping[str, Tensor], recipe: PairsRecipe, base: Path, counts: Mapping[str, float], folder: Path
) -> None:
    """Write pairs trained beside the coder in the file `base` to `folder`. `counts`: steps, rows, gaps and seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    with base.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    held: dict[str, Tensor] = {}
    for name, each in trained.items():
        rows = torch.atleast_2d(each.detach().cpu().float())
        scale = rows.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / _MOST
        held[name], held[name + SCALE] = (rows / scale).round().to(torch.int8), scale
    save_file(held, folder / WEIGHTS)
    said = {
        "base": {"file": base.name, "nbytes": base.stat().st_size, "sha256": sha256},
        "recipe": asdict(recipe),
        **counts,
    }
    (folder / METADATA).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
