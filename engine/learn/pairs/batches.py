"""Steps of training as tensors: the same seed and number give the same step in any process."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from engine.learn.contexts import of_tensors
from engine.learn.corpus import Split
from engine.learn.packed import PackedCorpus, packed_ns
from engine.learn.pairs.readings import NestedGaps, Readings
from engine.learn.pairs.recipe import PairsRecipe
from engine.learn.tokenizer import load_tokenizer
from engine.models.causal.opening import FimTokens

DRAWS = 8
"""Most draws for one context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasStep:
    """B contexts of N tokens, each with G canvases of W slots."""

    ids: Tensor
    """[B, N], padded; nothing attends to the padding."""
    length: Tensor
    """[B] tokens of each context."""
    cut: Tensor
    """[B, G] tokens of the context before the canvas."""
    text: Tensor
    """[B, G, W] the gap's tokens, padding in unused slots."""
    gap: Tensor
    """[B, G] tokens of the gap, which may be more than W; 0: there is no such canvas."""
    to_line_end: Tensor
    """[B, G] bool: as in NestedGap."""
    draw: Tensor
    """[B, G, W] in [0, 1): a slot is shown where it is below the canvas's `known`."""
    known: Tensor
    """[B, G] share of the slots that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSource(Dataset[CanvasStep]):
    """The steps of a run by number."""

    corpus: Path
    tokenizer: Path
    """The folder of the coder's tokenizer: workers get its name, not the tokenizer."""
    recipe: PairsRecipe
    fim: FimTokens
    seed: int
    split: Split = "train"
    lines: bool = False
    """Whether to draw only contexts whose last gap is the rest of a line."""

    def __getitem__(self, step: int) -> CanvasStep:
        recipe = self.recipe
        rng = random.Random(f"{self.seed}/{self.split}/{step}")
        width = recipe.widths[step % len(recipe.widths)]
        gaps = recipe.slots // width
        corpus = _packed(self.corpus, self.split, self.tokenizer, packed_ns(self.corpus, self.split))
        readings = Readings(corpus, self.fim, recipe, rng)
        tries = (readings.draw(gaps, width) for _ in range(DRAWS * recipe.contexts))
        fit = (reading for reading in tries if reading and (reading.gaps[-1].to_line_end or not self.lines))
        drawn = [reading for reading, _ in zip(fit, range(recipe.contexts), strict=False)]
        return stacked(drawn, width, gaps, recipe, self.fim.pad, np.random.default_rng((self.seed, step)))


def stacked(
    readings: list[NestedGaps], width: int, gaps: int, recipe: PairsRecipe, pad: int, rng: np.random.Generator
) -> CanvasStep:
    """A step of `readings`, each with up to `gaps` canvases of `width` slots."""
    rows = len(readings)
    # No canvas without a gap for all contexts: it would cost as much as one that teaches something.
    gaps = min(gaps, max(len(reading.gaps) for reading in readings))
    ids = np.full((rows, recipe.context), pad)
    text = np.full((rows, gaps, width), pad)
    cut, gap = np.ones((rows, gaps), dtype=np.int64), np.zeros((rows, gaps), dtype=np.int64)
    to_line_end = np.zeros((rows, gaps), dtype=np.bool_)
    for row, reading in enumerate(readings):
        ids[row, : len(reading.context)] = reading.context
        for at, each in enumerate(reading.gaps[-gaps:]):
            cut[row, at], gap[row, at], to_line_end[row, at] = each.cut, len(each.ids), each.to_line_end
            text[row, at, : len(each.ids)] = each.ids[:width]
    blank = rng.random((rows, gaps)) < recipe.blank
    return CanvasStep(
        ids=torch.from_numpy(ids),
        length=torch.tensor([len(reading.context) for reading in readings]),
        cut=torch.from_numpy(cut),
        text=torch.from_numpy(text),
        gap=torch.from_numpy(gap),
        to_line_end=torch.from_numpy(to_line_end),
        draw=torch.from_numpy(rng.random((rows, gaps, width), dtype=np.float32)),
        known=torch.from_numpy(np.where(blank, 0, rng.random((rows, gaps))).astype(np.float32)),
    )


def steps(source: StepSource, numbers: Iterable[int], device: torch.device, workers: int) -> Iterator[CanvasStep]:
    """The steps of these numbers on `device`; `workers`: processes that make them ahead, 0 for none."""
    loader = DataLoader(source, batch_size=None, sampler=numbers, num_workers=workers)  # pyright: ignore
    for step in loader:
        yield of_tensors(lambda tensor: tensor.to(device, non_blocking=True), step)


@cache
def _packed(corpus: Path, split: Split, tokenizer: Path, written_ns: int) -> PackedCorpus:
    """A corpus, opened once a process and once more when its file has changed."""
    return PackedCorpus(corpus, split, load_tokenizer(tokenizer))
