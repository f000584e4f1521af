"""The training loop: seeded, resumable after a cut at any moment, with a curve and checkpoints in one folder."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.models.gemma_network import Network
from engine.models.layout import Layout
from engine.train.canvases import canvas_batch, canvas_losses
from engine.train.next_token import next_token_batch, next_token_loss
from engine.train.optimise import DECAY, Optimiser
from engine.train.packed import PackedCorpus
from engine.train.presets import Preset
from engine.train.shapes import new_model, trained_parameters
from engine.train.tokenizer import load_tokenizer

SAVE_EVERY_S = 300.0
REPORT_EVERY = 10
"""Steps"""
CHECK_EVERY = 100
"""Steps between looks at the held-out split."""
HELD_OUT_SEED = 20_000
CHECKPOINT, PLATEAU = "checkpoint.pt", "plateau.pt"
"""The newest state, and the last one before the learning rate fell: a longer run goes on from there."""

Phase = Callable[[str, random.Random], dict[str, Tensor]]
"""(split, random source) -> the losses of one batch by name, to be added up."""


@dataclass(slots=True, kw_only=True)
class State:
    """Everything that a run needs to go on: kept in `checkpoint.pt` of the run's folder."""

    module: Any
    optimiser: Optimiser
    step: int = 0
    tokens: int = 0
    """Context tokens read."""


def train(
    preset: Preset, corpus: Path, folder: Path, seed: int, report: Callable[[str], None], compiled: bool
) -> State:
    """Train until the preset's tokens are read, going on from the checkpoint in `folder` if there is one."""
    state = _restored(preset, folder, seed)
    network = Network(state.module, compiled=compiled)
    phases = _phases(network, corpus, preset)
    meter = Meter(state, preset)
    saved = time.monotonic()
    while state.tokens < preset.tokens:
        progress = state.tokens / preset.tokens
        phase = phases[state.tokens >= preset.next_token_tokens]
        figures = phase("train", random.Random(f"{seed}/{state.step}"))
        sum(figures.values(), torch.zeros(())).backward()
        if progress >= 1 - DECAY > progress - preset.step_tokens / preset.tokens:
            save(state, folder / PLATEAU)
        state.optimiser.step(progress)
        state.step += 1
        state.tokens += preset.step_tokens
        if state.step % REPORT_EVERY == 0:
            report(_log(folder, state, "train", figures) + meter.line())
        if state.step % CHECK_EVERY == 0:
            report(_log(folder, state, "held-out", _held_out(phase)))
        if time.monotonic() - saved > SAVE_EVERY_S:
            saved = time.monotonic()
            save(state, folder / CHECKPOINT)
    save(state, folder / CHECKPOINT)
    return state


class Meter:
    """Speed and remaining time of this sitting."""

    def __init__(self, state: State, preset: Preset) -> None:
        self._state, self._preset = state, preset
        self._started, self._at_start = time.monotonic(), state.tokens

    def line(self) -> str:
        """For people: context tokens a second, minutes left at that speed."""
        speed = (self._state.tokens - self._at_start) / (time.monotonic() - self._started)
        left = (self._preset.tokens - self._state.tokens) / speed
        return f"  {speed:.0f} tokens/s  {left / 60:.0f} min left"


def save(state: State, path: Path) -> None:
    """Write a checkpoint so that a cut at any moment leaves either the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(
        {
            "weights": {name: p.detach() for name, p in trained_parameters(state.module).items()},
            "optimiser": state.optimiser.state(),
            "step": state.step,
            "tokens": state.tokens,
        },
        partial,
    )
    partial.replace(path)


def _restored(preset: Preset, folder: Path, seed: int) -> State:
    module = new_model(preset.shape, seed)
    parameters = trained_parameters(module)
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    state = State(module=module, optimiser=Optimiser(parameters, preset.rates))
    path = _resumed_from(preset, folder)
    if path is not None:
        saved = torch.load(path, weights_only=True)
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(saved["weights"][name])
        state.optimiser.restore(saved["optimiser"])
        state.step, state.tokens = saved["step"], saved["tokens"]
    return state


def _resumed_from(preset: Preset, folder: Path) -> Path | None:
    """The newest checkpoint that fits the schedule: one that has decayed is no start for a longer run."""
    plateau, newest = folder / PLATEAU, folder / CHECKPOINT
    if not newest.exists():
        return None
    before_decay = (1 - DECAY) * preset.tokens
    if plateau.exists() and torch.load(newest, weights_only=True)["tokens"] < before_decay:
        started_decay = torch.load(plateau, weights_only=True)["tokens"]
        return plateau if torch.load(newest, weights_only=True)["tokens"] > started_decay else newest
    return newest


def _phases(network: Network, corpus: Path, preset: Preset) -> tuple[Phase, Phase]:
    splits = {split: PackedCorpus(corpus / "packed" / split) for split in ("train", "held-out")}
    tokenizer = load_tokenizer(corpus / "tokenizer")
    layout = Layout()

    def next_tokens(split: str, rng: random.Random) -> dict[str, Tensor]:
        batch = next_token_batch(splits[split], layout, preset.rows, preset.context, rng)
        return {"next_token": next_token_loss(network, batch)}

    def canvases(split: str, rng: random.Random) -> dict[str, Tensor]:
        batch = canvas_batch(splits[split], tokenizer, layout, preset.rows, preset.context, preset.canvases, rng)
        canvas, next_token = canvas_losses(network, batch)
        return {"canvas": canvas, "next_token": preset.next_token_weight * next_token}

    return next_tokens, canvases


@torch.no_grad()
def _held_out(phase: Phase) -> dict[str, Tensor]:
    looks = [phase("held-out", random.Random(HELD_OUT_SEED + look)) for look in range(4)]
    return {name: torch.stack([look[name] for look in looks]).mean() for name in looks[0]}


def _log(folder: Path, state: State, split: str, figures: dict[str, Tensor]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    values = {name: round(value.item(), 4) for name, value in figures.items()}
    with (folder / "curve.jsonl").open("a") as curve:
        curve.write(json.dumps({"step": state.step, "tokens": state.tokens, "split": split, **values}) + "\n")
    return f"step {state.step}  {split}  " + "  ".join(f"{name} {value:.3f}" for name, value in values.items())
