"""Estimates what tuning a coder would take. There is no training for coders, so only its parts are timed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from engine.learn.lessons import count_tokens, tokenizer_of
from engine.learn.repository import read_repository
from engine.learn.tuning import PASSES, Say, listed, summary
from engine.models.checkpoints.directory import Checkpoint
from engine.models.products import prefers_bfloat16

_PER_WEIGHT = 4
"""Sums and products for each weight and token: two each way, as weights that stay as they are need no gradients."""
_ROWS, _WIDTH, _TIMES = 512, 2048, 8
"""The product that is timed: so many rows, and features on either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """The least that tuning would take."""

    nbytes: int
    """Memory of the weights, in a format that can be trained on."""
    available: int
    seconds: float
    """Time of the products of all passes."""


def least(folder: Path, checkpoint: Checkpoint, say: Say) -> Least:
    """Read a folder and say what there is to learn from it, as `prepared` does for models that can be tuned. Raises
    BadInput where that is too little."""
    listing = listed(folder, say)
    repository = read_repository(listing)
    tokens = count_tokens(repository, tokenizer_of(checkpoint))
    say(summary(listing, repository, tokens))
    dtype = torch.bfloat16 if prefers_bfloat16("cpu") else torch.float32
    return Least(
        nbytes=checkpoint.nbytes_in(dtype.itemsize),
        available=psutil.virtual_memory().available,
        seconds=PASSES * tokens["train"] * _PER_WEIGHT * checkpoint.parameters / _speed(dtype),
    )


def _speed(dtype: torch.dtype) -> float:
    """Sums and products a second of this processor."""
    rows, weight = torch.ones(_ROWS, _WIDTH, dtype=dtype), torch.ones(_WIDTH, _WIDTH, dtype=dtype)
    took_s: list[float] = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        torch.mm(rows, weight)
        took_s.append(time.perf_counter() - began)
    return 2 * _ROWS * _WIDTH * _WIDTH / min(took_s)
