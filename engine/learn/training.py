"""The training loop: seeded and resumable after a cut at any moment, with its loss curve and checkpoints in one folder.

Batches go by step number. Other processes make them in advance where the model would have to wait for them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.compiler import config as compiler
from torch.utils.data import DataLoader, Dataset

from engine.learn.canvases import INNER, Canvases, canvas_batch, canvas_losses
from engine.learn.contexts import Contexts, context_losses, contexts, filled_rows, of_tensors
from engine.learn.corpus import Split
from engine.learn.examples import Examples
from engine.learn.masked_rows import MaskedRows, masked_loss
from engine.learn.optimise import schedule
from engine.learn.packed import PackedCorpus, packed_ns
from engine.learn.state import CHECKPOINT, PLATEAU, Point, TrainingState, add_point, open_state, save
from engine.learn.training_recipe import Recipe
from engine.models.gemma.network import GemmaNetwork
from engine.models.masked.network import MaskedNetwork

REPORT_EVERY = 10
"""Steps between two lines of a report."""
CHECK_EVERY = 100
"""Steps between two measurements on the held-out split."""
COMPILED = 24
"""Most variants of a layer that are compiled: widths of context and canvas, signal, training and held out, for both
kinds of layers. Further ones run uncompiled."""
LOOKS = 4
"""Batches of a measurement, always the same."""
LOSSES = ("canvas", "next_token", "gap", "width", "end")
"""Names of the losses; without canvases the first one is missing."""
Batch = Contexts | Canvases | MaskedRows
B = TypeVar("B", bound=Batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """How a run runs on this machine; this changes what is learnt only by rounding."""

    device: torch.device
    compiled: bool = False
    bfloat16: bool = False
    """Multiply matrices in bfloat16; weights and sums stay in float32."""
    workers: int = 0
    """Number of processes that make batches in advance."""
    save_every_s: float = 300.0
    start_from: Path | None = None
    """A new run goes on from the run or the exported weights in this folder."""


def train(
    recipe: Recipe,
    corpus: Path,
    folder: Path,
    seed: int,
    sitting: Sitting,
    report: Callable[[str], None] = print,
    should_pause: Callable[[], bool] = lambda: False,
) -> TrainingState:
    """Train until the recipe's tokens are read or `should_pause`, going on from the checkpoint in `folder` if there is
    one. Raises BadInput for a corpus or checkpoint that is missing or does not fit."""
    state = open_state(recipe, folder, seed, sitting.device, sitting.start_from)
    network = GemmaNetwork(state.module, sitting.compiled)
    source = BatchSource(corpus=corpus, recipe=recipe, seed=seed)
    times: deque[float] = deque(maxlen=4 * REPORT_EVERY)
    saved = began = time.monotonic()
    places = zip(count(state.step), range(state.tokens, recipe.tokens, recipe.step_tokens), strict=False)
    with cast(Any, compiler).patch(recompile_limit=COMPILED):
        for batch in batches(source, places, sitting.device, sitting.workers):
            if should_pause():
                break
            losses = step_losses(network, batch, sitting)
            total_loss(losses, recipe).backward()
            left = (recipe.tokens - state.tokens) / recipe.decay if recipe.decay else 1.0
            state.optimiser.step(schedule(state.optimiser.steps, left) * recipe.scale_after(state.tokens))
            before = state.tokens
            state.step += 1
            state.tokens += recipe.step_tokens
            times.append(time.monotonic() - began)
            state.seconds += times[-1]
            if recipe.averages(before, state.tokens):
                state.average()
            if before < recipe.plateau_tokens <= state.tokens:
                save(state, folder / PLATEAU, recipe)
            if state.step % REPORT_EVERY == 0:
                report(_log(folder, state, "train", losses) + _progress(state, recipe, times))
            if state.step % CHECK_EVERY == 0:
                report(_log(folder, state, "held-out", held_out(network, source, before, sitting)))
            if time.monotonic() - saved > sitting.save_every_s:
                saved = time.monotonic()
                save(state, folder / CHECKPOINT, recipe)
            # The next step begins with the making of its batch, or the wait for it.
            began = time.monotonic()
    save(state, folder / CHECKPOINT, recipe)
    return state


def step_losses(network: GemmaNetwork | MaskedNetwork, batch: Batch, sitting: Sitting) -> dict[str, Tensor]:
    """The losses of one batch by name, in nats a token."""
    with torch.autocast(sitting.device.type, torch.bfloat16, enabled=sitting.bfloat16):
        if isinstance(batch, MaskedRows):
            assert isinstance(network, MaskedNetwork)
            return {"masked": masked_loss(network, batch)}
        assert isinstance(network, GemmaNetwork)
        if isinstance(batch, Contexts):
            return dict(zip(LOSSES[1:], context_losses(network, batch), strict=True))
        return dict(zip(LOSSES, canvas_losses(network, batch), strict=True))


def total_loss(losses: dict[str, Tensor], recipe: Recipe) -> Tensor:
    if "masked" in losses:
        return losses["masked"]
    of_gaps = recipe.gap_weight * losses["gap"] + recipe.width_weight * losses["width"]
    of_contexts = losses["next_token"] + of_gaps + recipe.end_weight * losses["end"]
    return losses["canvas"] + recipe.next_token_weight * of_contexts if "canvas" in losses else of_contexts


@torch.no_grad()
def held_out(network: GemmaNetwork, source: BatchSource, tokens: int, sitting: Sitting) -> dict[str, Tensor]:
    """Mean losses of a few held-out batches, as they are made after so many tokens."""
    made = [to_device(source.batch(look, tokens, "held-out"), sitting.device) for look in range(LOOKS)]
    looks = [step_losses(network, batch, sitting) for batch in made]
    return {name: torch.stack([look[name] for look in looks]).mean() for name in looks[0]}


def _progress(state: TrainingState, recipe: Recipe, times: deque[float]) -> str:
    # A step during which the run was frozen or had to yield is an outlier: the middle of the last ones counts.
    speed = recipe.step_tokens / statistics.median(times)
    left = (recipe.tokens - state.tokens) / speed
    return f"  {state.tokens / 1e6:.2f} M tokens  {speed:.0f} tokens/s  {left / 3600:.1f} h left"


def _log(folder: Path, state: TrainingState, split: str, losses: dict[str, Tensor]) -> str:
    values = {name: round(value.item(), 4) for name, value in losses.items()}
    add_point(folder, Point(step=state.step, tokens=state.tokens, split=split, losses=values))
    return f"step {state.step}  {split}  " + "  ".join(f"{name} {value:.3f}" for name, value in values.items())


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
        is_trained = split == "train"
        recipe = self.recipe if is_trained else replace(self.recipe, echo_share=0.0)
        # What is held out is drawn alike to the end, so that looks can be compared.
        best = is_trained and tokens >= recipe.best_from
        examples = Examples(_packed(self.corpus, split, packed_ns(self.corpus, split)), recipe, rng, best)
        width = recipe.contexts[step % len(recipe.contexts)]
        if tokens >= recipe.canvases_from:
            return canvas_batch(filled_rows(examples, recipe.rows(width), width, INNER), recipe, width, rng)
        return contexts([*filled_rows(examples, recipe.rows(width), width)], width)


def batches(
    source: BatchSource, places: Iterable[tuple[int, int]], device: torch.device, workers: int
) -> Iterator[Batch]:
    """The batches of `places` (step, tokens before it) on `device`. Without workers each is made when it is
    requested."""
    loader = DataLoader(source, batch_size=None, sampler=places, num_workers=workers)  # pyright: ignore
    for batch in loader:
        yield to_device(batch, device)


def to_device(batch: B, device: torch.device) -> B:
    return of_tensors(lambda tensor: tensor.to(device, non_blocking=True), batch)


@cache
def _packed(corpus: Path, split: Split, written_ns: int) -> PackedCorpus:
    """The corpus, opened once, and again after it was packed anew."""
    return PackedCorpus(corpus, split)
