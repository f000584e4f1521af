"""Trains pairs: seeded, resumable after a cut at any moment, with checkpoint, curve and figures in one folder."""

from __future__ import annotations

import json
import math
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from engine.common.errors import BadInput
from engine.common.files import replacing
from engine.learn.optimise import apply, schedule
from engine.learn.pairs.batches import StepSource, steps
from engine.learn.pairs.canvas import Breaks, Pairs, loss, prefill, targets
from engine.learn.pairs.gates import Gates, assess
from engine.learn.pairs.recipe import PairsRecipe
from engine.learn.pairs.written_lines import WrittenLines
from engine.models.causal.opening import Coder
from engine.models.causal.pairs import read_pairs

CHECKPOINT, CURVE = "pairs.pt", "curve.jsonl"
WARM_UP = 20
"""Steps."""
REPORT_EVERY = 10
"""Steps."""
_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Without cuDNN's, whose gradients were NaN with a mask (H200, torch 2.11)."""
LOOKS, LOOK_CONTEXTS, LOOK_SLOTS = 3, 24, 96
"""Steps of the held-out split to assess on, always the same, contexts of each and slots of each context: more would
take minutes of two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsSitting:
    """How a run uses this machine. Only `start_from` changes what is learnt."""

    device: torch.device
    workers: int = 0
    save_every_s: float = 300.0
    assess_every_s: float = 900.0
    start_from: Path | None = None
    """The folder of written pairs that a new run starts from, with a fresh optimiser."""


@dataclass(slots=True, kw_only=True)
class PairsState:
    """The state of a run, all of which a checkpoint holds."""

    pairs: Pairs
    optimiser: torch.optim.AdamW
    step: int = 0
    rows: int = 0
    """Places of canvases that the loss was taken at."""
    gaps: int = 0
    seconds: float = 0.0
    """Time of training, without assessments."""

    def counts(self) -> dict[str, float]:
        """Steps, rows, gaps and seconds so far."""
        return {"step": self.step, "rows": self.rows, "gaps": self.gaps, "seconds": self.seconds}


def train_pairs(
    coder: Coder,
    recipe: PairsRecipe,
    corpus: Path,
    folder: Path,
    seed: int,
    sitting: PairsSitting,
    report: Callable[[str], None] = print,
    should_pause: Callable[[], bool] = lambda: False,
) -> PairsState:
    """Train until the recipe's end or `should_pause`, from the checkpoint in `folder` if it has one.

    Raises BadInput for a corpus or checkpoint that is missing or does not fit.
    """
    state = open_pairs(coder, recipe, folder, seed, sitting.start_from)
    base, pad = coder.network, coder.fim.pad
    breaks = Breaks.of(coder, sitting.device)
    folder.mkdir(parents=True, exist_ok=True)
    coder.tokenizer.save(str(folder / "tokenizer.json"))
    source = StepSource(corpus=corpus, tokenizer=folder, recipe=recipe, fim=coder.fim, seed=seed)
    own_lines = WrittenLines(coder, source, breaks)
    trained = list(state.pairs.trained().values())
    recent: deque[tuple[float, float]] = deque(maxlen=REPORT_EVERY)
    times: deque[float] = deque(maxlen=2 * REPORT_EVERY)
    saved = looked = began = time.monotonic()
    for step in steps(source, count(state.step), sitting.device, sitting.workers):
        if should_pause() or finished(state, recipe):
            break
        own = random.Random(f"{seed}/{state.step}").random() < recipe.distilled
        of = own_lines.step(state.step) if own else prefill(base, step)
        with sdpa_kernel(_ATTENTION):
            nats, rows, right = loss(state.pairs, of, targets(of.step), recipe, base.module.lm_head.weight, pad)
            nats.backward()
        apply(state.optimiser, trained, recipe.rate * scale(state, recipe))
        state.step += 1
        state.rows += int(rows)
        state.gaps += int((of.step.gap > 0).sum())
        recent.append((float(nats.detach()), float(right)))
        now = time.monotonic()
        times.append(now - began)
        state.seconds, began = state.seconds + times[-1], now
        if state.step % REPORT_EVERY == 0:
            report(_progress(state, recent, times))
        if now - looked > sitting.assess_every_s:
            report(_look(coder, state, source, recipe, breaks, folder).line())
            looked = began = time.monotonic()
        if now - saved > sitting.save_every_s:
            save_pairs(state, folder)
            saved = time.monotonic()
    save_pairs(state, folder)
    report(_look(coder, state, source, recipe, breaks, folder).line())
    return state


def finished(state: PairsState, recipe: PairsRecipe) -> bool:
    """Whether all rows are read or all seconds are used up."""
    return _done(state, recipe) >= 1


def scale(state: PairsState, recipe: PairsRecipe) -> float:
    """The learning rate as a share of its peak: it rises linearly, stays, and falls to 0."""
    left = (1 - _done(state, recipe)) / recipe.decay if recipe.decay else 1.0
    return schedule(state.step, left, WARM_UP)


def _done(state: PairsState, recipe: PairsRecipe) -> float:
    """The share of the run that is over."""
    return max(state.rows / recipe.rows, state.seconds / recipe.seconds if recipe.seconds else 0.0)


def open_pairs(
    coder: Coder, recipe: PairsRecipe, folder: Path, seed: int, start_from: Path | None = None
) -> PairsState:
    """The run in `folder` as it was last saved; else a new one, from the pairs in `start_from` or from scratch.

    Raises BadInput for a checkpoint or pairs of another shape.
    """
    pairs = Pairs(coder.network, recipe, coder.network.embeddings.weight[coder.fim.pad], seed)
    trained = pairs.trained()
    optimiser = torch.optim.AdamW(
        trained.values(), lr=recipe.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=trained["mask"].is_cuda
    )
    state = PairsState(pairs=pairs, optimiser=optimiser)
    path = folder / CHECKPOINT
    if path.exists():
        saved: dict[str, Any] = torch.load(path, weights_only=True, map_location=trained["mask"].device)
        _copy(saved["trained"], trained, path)
        optimiser.load_state_dict(saved["optimiser"])
        for name in state.counts():
            setattr(state, name, saved[name])
    elif start_from is not None:
        _copy(read_pairs(start_from), trained, start_from)
    return state


@torch.no_grad()
def _copy(weights: dict[str, Tensor], into: dict[str, nn.Parameter], path: Path) -> None:
    if {name: each.shape for name, each in into.items()} != {name: each.shape for name, each in weights.items()}:
        raise BadInput(f"{path} holds pairs of another shape: name another run, or its recipe.")
    for name, each in into.items():
        each.copy_(weights[name])


def save_pairs(state: PairsState, folder: Path) -> None:
    """Write a checkpoint; a cut at any moment leaves either the old or the new one."""
    held = {
        "trained": {name: each.detach() for name, each in state.pairs.trained().items()},
        "optimiser": state.optimiser.state_dict(),
        **state.counts(),
    }
    with replacing(folder / CHECKPOINT) as draft:
        torch.save(held, draft)


def _look(
    coder: Coder, state: PairsState, source: StepSource, recipe: PairsRecipe, breaks: Breaks, folder: Path
) -> Gates:
    """Assess the pairs on the same held-out canvases each time, and add the figures to the curve."""
    canvases = replace(recipe, contexts=LOOK_CONTEXTS, slots=LOOK_SLOTS)
    held_out = replace(source, recipe=canvases, seed=0, split="held-out")
    looks = steps(held_out, range(LOOKS), breaks.inside.device, 0)
    gates = assess(coder, state.pairs, looks, breaks)
    with (folder / CURVE).open("a", encoding="utf-8") as curve:
        curve.write(json.dumps({**state.counts(), **asdict(gates)}) + "\n")
    return gates


def _progress(state: PairsState, recent: deque[tuple[float, float]], times: deque[float]) -> str:
    nats, right = (math.fsum(each) / len(recent) for each in zip(*recent, strict=True))
    return (
        f"step {state.step}  {state.rows / 1e6:.3f} M rows  {state.gaps / 1e3:.1f} k gaps  loss {nats:.3f}"
        f"  right {100 * right:.1f}%  {median(times):.3f} s a step"
    )
