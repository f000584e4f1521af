"""The training loop: seeded, resumable after a cut at any moment, with a curve and checkpoints in one folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.compiler import config as compiler

from engine.models.gemma_network import Network
from engine.train.batches import Batch, Batches, BatchSource, to_device
from engine.train.canvases import canvas_losses
from engine.train.next_token import NextTokens, next_token_loss
from engine.train.presets import Preset
from engine.train.state import CHECKPOINT, PLATEAU, Point, State, add_point, open_state, save

REPORT_EVERY = 10
"""Steps"""
CHECK_EVERY = 100
"""Steps between looks at the held-out split."""
COMPILED = 16
"""Ways that a layer is compiled, at the most: context, canvas and signal, in training and held out, for both kinds of
layers; what goes beyond runs uncompiled."""
LOOKS = 4
"""Batches of the held-out split, always the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """How a run runs here and now; nothing of it changes what is learnt, but for rounding."""

    device: torch.device
    compiled: bool = False
    bfloat16: bool = False
    """Multiply matrices in bfloat16; weights and sums stay in float32."""
    workers: int = 0
    """Processes that make batches in advance."""
    save_every_s: float = 300.0
    weights: Path | None = None
    """A new run starts from these exported weights."""


def train(
    preset: Preset,
    corpus: Path,
    folder: Path,
    seed: int,
    sitting: Sitting,
    report: Callable[[str], None] = print,
    should_pause: Callable[[], bool] = lambda: False,
) -> State:
    """Train until the preset's tokens are read or `should_pause`, going on from the checkpoint in `folder` if any.

    Raises BadInput for a corpus or checkpoint that is missing or does not fit.
    """
    state = open_state(preset, folder, seed, sitting.device, sitting.weights)
    network = Network(state.module, compiled=sitting.compiled)
    source = BatchSource(corpus=corpus, preset=preset, seed=seed)
    meter = Meter(state, preset)
    saved = time.monotonic()
    first = (state.step, state.tokens)

    def plan(step: int) -> int | None:
        tokens = first[1] + (step - first[0]) * preset.step_tokens
        return preset.phase(tokens) if tokens < preset.tokens else None

    with (
        cast(Any, compiler).patch(recompile_limit=COMPILED),
        Batches(source, plan, sitting.device, sitting.workers) as batches,
    ):
        while state.tokens < preset.tokens and not should_pause():
            began = time.monotonic()
            losses = step_losses(network, batches.take(state.step), preset, sitting)
            _total(losses, preset).backward()
            state.optimiser.step(state.tokens / preset.tokens)
            state.step += 1
            state.tokens += preset.step_tokens
            state.seconds += time.monotonic() - began
            if state.tokens - preset.step_tokens < preset.plateau_tokens <= state.tokens:
                save(state, folder / PLATEAU, preset.tokens)
            if state.step % REPORT_EVERY == 0:
                report(_log(folder, state, "train", losses) + meter.line())
            if state.step % CHECK_EVERY == 0:
                report(_log(folder, state, "held-out", held_out(network, source, plan(state.step - 1), sitting)))
            if time.monotonic() - saved > sitting.save_every_s:
                saved = time.monotonic()
                save(state, folder / CHECKPOINT, preset.tokens)
    save(state, folder / CHECKPOINT, preset.tokens)
    return state


def step_losses(network: Network, batch: Batch, preset: Preset, sitting: Sitting) -> dict[str, Tensor]:
    """The losses of one batch by name, in nats a token."""
    with torch.autocast(sitting.device.type, torch.bfloat16, enabled=sitting.bfloat16):
        if isinstance(batch, NextTokens):
            return {"next_token": next_token_loss(network, batch)}
        canvas, next_token = canvas_losses(network, batch)
        return {"canvas": canvas, "next_token": next_token}


def _total(losses: dict[str, Tensor], preset: Preset) -> Tensor:
    if "canvas" not in losses:
        return losses["next_token"]
    return losses["canvas"] + preset.next_token_weight * losses["next_token"]


@torch.no_grad()
def held_out(network: Network, source: BatchSource, phase: int | None, sitting: Sitting) -> dict[str, Tensor]:
    """Mean losses of a few batches of the held-out split."""
    batches = [to_device(source.batch(look, phase or 0, "held-out"), sitting.device) for look in range(LOOKS)]
    looks = [step_losses(network, batch, source.preset, sitting) for batch in batches]
    return {name: torch.stack([look[name] for look in looks]).mean() for name in looks[0]}


class Meter:
    """Speed and remaining time of this sitting."""

    def __init__(self, state: State, preset: Preset) -> None:
        self._state, self._preset = state, preset
        self._last, self._tokens = time.monotonic(), state.tokens

    def line(self) -> str:
        """For people: context tokens a second since the last line, minutes left at that speed."""
        now = time.monotonic()
        speed = (self._state.tokens - self._tokens) / (now - self._last)
        self._last, self._tokens = now, self._state.tokens
        left = (self._preset.tokens - self._state.tokens) / speed
        return f"  {speed:.0f} tokens/s  {left / 60:.0f} min left"


def _log(folder: Path, state: State, split: str, losses: dict[str, Tensor]) -> str:
    values = {name: round(value.item(), 4) for name, value in losses.items()}
    add_point(folder, Point(step=state.step, tokens=state.tokens, split=split, losses=values))
    return f"step {state.step}  {split}  " + "  ".join(f"{name} {value:.3f}" for name, value in values.items())
