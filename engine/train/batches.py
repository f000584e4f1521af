"""Batches by step number, made in advance by other processes where the model would have to wait for them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

from engine.train.canvases import Canvases, canvas_batch
from engine.train.contexts import Contexts, contexts, filled_rows, of_tensors
from engine.train.corpus import Split
from engine.train.examples import Examples
from engine.train.packed import PackedCorpus
from engine.train.recipe import Recipe

Batch = Contexts | Canvases


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSource(Dataset[Batch]):
    """Makes the batch of any step: the same arguments give the same batch, in any process."""

    corpus: Path
    recipe: Recipe
    seed: int

    def __getitem__(self, index: tuple[int, int]) -> Batch:
        return self.batch(*index)

    def batch(self, step: int, tokens: int, split: Split = "train") -> Batch:
        """The batch of a step before which so many context tokens were read."""
        rng = random.Random(f"{self.seed}/{split}/{step}")
        recipe = self.recipe
        examples = Examples(_packed(self.corpus, split), recipe, rng, tokens >= recipe.plateau_tokens)
        width = recipe.contexts[step % len(recipe.contexts)]
        if tokens >= recipe.canvases_from:
            return canvas_batch(examples, recipe, width, rng)
        return contexts([*filled_rows(examples, recipe.rows(width), width)], width)


def batches(
    source: BatchSource, places: Iterable[tuple[int, int]], device: torch.device, workers: int
) -> Iterator[Batch]:
    """The batches of `places`, a step and the tokens before it each, on `device`. Without workers they are made when
    they are asked for."""
    loader = DataLoader(source, batch_size=None, sampler=places, num_workers=workers)  # pyright: ignore
    for batch in loader:
        yield to_device(batch, device)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The same batch with its tensors on `device`."""
    return of_tensors(lambda tensor: tensor.to(device, non_blocking=True), batch)


@cache
def _packed(corpus: Path, split: Split) -> PackedCorpus:
    return PackedCorpus(corpus, split)
