"""Batches by step number, made in advance by other processes where the model would have to wait for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from engine.train.canvases import Canvases, canvas_batch
from engine.train.contexts import Contexts, contexts, filled_rows
from engine.train.corpus import Split
from engine.train.examples import Examples
from engine.train.packed import PackedCorpus
from engine.train.presets import Phase, Preset

Batch = Contexts | Canvases


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSource:
    """Makes the batch of any step: the same arguments give the same batch, in any process."""

    corpus: Path
    preset: Preset
    seed: int

    def batch(self, step: int, phase: Phase, split: Split = "train") -> Batch:
        """The batch of a step."""
        rng = random.Random(f"{self.seed}/{split}/{step}")
        preset = self.preset
        examples = Examples(_packed(self.corpus, split), preset, rng, phase.best)
        width = preset.contexts[step % len(preset.contexts)]
        if phase.canvases:
            return canvas_batch(examples, preset, width, rng)
        return contexts([row for row, _ in filled_rows(examples, preset.rows(width), width)], width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps(Dataset[Batch]):
    source: BatchSource
    plan: Callable[[int], Phase]

    def __getitem__(self, step: int) -> Batch:
        return self.source.batch(step, self.plan(step))


def batches(
    source: BatchSource, plan: Callable[[int], Phase], steps: range, device: torch.device, workers: int
) -> Iterator[Batch]:
    """The batches of `steps` on `device`; `plan` tells what each is made of. Without workers they are made when they
    are asked for."""
    loader = DataLoader(
        _Steps(source=source, plan=plan),
        batch_size=None,
        sampler=steps,
        num_workers=workers,  # pyright: ignore
    )
    for batch in loader:
        yield to_device(batch, device)


def to_device(batch: Any, device: torch.device) -> Any:
    """The same batch with its tensors on `device`."""
    if not is_dataclass(batch):
        return batch.to(device, non_blocking=True)
    return type(batch)(**{each.name: to_device(getattr(batch, each.name), device) for each in fields(batch)})


@cache
def _packed(corpus: Path, split: Split) -> PackedCorpus:
    return PackedCorpus(corpus, split)
