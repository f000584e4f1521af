"""The state of a run and its files: checkpoints that survive a cut at any moment, and a loss curve."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from engine.common.errors import BadInput
from engine.common.files import replacing
from engine.learn.optimise import Optimiser
from engine.learn.shapes import new_model, trained_parameters
from engine.learn.training_recipe import Recipe
from engine.models.checkpoints.directory import METADATA_FILE, SINGLE_FILE

CHECKPOINT, PLATEAU, CURVE = "checkpoint.pt", "plateau.pt", "curve.jsonl"
"""Files: the newest state; the last one before the learning rate fell, from which a longer run goes on; the losses."""


@dataclass(slots=True, kw_only=True)
class TrainingState:
    module: Any
    optimiser: Optimiser
    step: int = 0
    tokens: int = 0
    """Context tokens read."""
    seconds: float = 0.0
    """Time spent training."""
    mean: dict[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])
    """The mean of the weights at several moments, by parameter; empty before the first of them."""
    averaged: int = 0
    """How many moments."""

    @torch.no_grad()
    def average(self) -> None:
        """Add the current weights to the mean."""
        self.averaged += 1
        for name, parameter in trained_parameters(self.module).items():
            self.mean.setdefault(name, torch.zeros_like(parameter)).lerp_(parameter, 1 / self.averaged)


def open_state(
    recipe: Recipe, folder: Path, seed: int, device: torch.device, start_from: Path | None = None
) -> TrainingState:
    """The run in `folder` as it was last saved, or a new one.

    A new one branches from the run in the folder `start_from`, or starts from the exported weights there with a fresh
    optimiser, or from random weights. Raises BadInput for a checkpoint or weights of another shape, and a `start_from`
    that holds neither.
    """
    if start_from is not None and not (folder / CHECKPOINT).exists() and (start_from / CHECKPOINT).exists():
        folder.mkdir(parents=True, exist_ok=True)
        # The checkpoint last: what has one is a run.
        for name in (CURVE, PLATEAU, CHECKPOINT):
            if (start_from / name).exists():
                with replacing(folder / name) as draft:
                    shutil.copyfile(start_from / name, draft)
    if (folder / CHECKPOINT).exists():
        saved = _saved(folder, recipe)
    else:
        saved = _exported(start_from) if start_from is not None else None
    state = _state(recipe, folder, seed, device, saved)
    if (folder / CURVE).exists():
        kept = [_line(point) for point in read_curve(folder) if point.step <= state.step]
        with replacing(folder / CURVE) as draft:
            draft.write_text("".join(kept), encoding="utf-8")
    return state


def newest_state(recipe: Recipe, folder: Path) -> TrainingState:
    """The run in `folder` for looking at, with the mean of its weights where there is one. Raises BadInput where there
    is none, or one of another shape."""
    if not (folder / CHECKPOINT).exists():
        raise BadInput(f"{folder} holds no run: train one first, or name its folder.")
    saved = torch.load(folder / CHECKPOINT, weights_only=True)
    return _state(recipe, folder, 0, torch.device("cpu"), saved | {"weights": saved.get("mean") or saved["weights"]})


def save(state: TrainingState, path: Path, recipe: Recipe) -> None:
    """Write a checkpoint of a run by `recipe`; a cut at any moment leaves either the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = {
        "weights": {name: p.detach() for name, p in trained_parameters(state.module).items()},
        "optimiser": state.optimiser.state(),
        "step": state.step,
        "tokens": state.tokens,
        "seconds": state.seconds,
        "mean": state.mean,
        "averaged": state.averaged,
        "planned": recipe.tokens,
        "decay": recipe.decay,
    }
    with replacing(path) as draft:
        torch.save(held, draft)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a loss curve. Losses in nats a token."""

    step: int
    tokens: int
    split: str
    losses: dict[str, float]


def read_curve(folder: Path) -> list[Point]:
    """The points of a curve, without a last line that was cut off."""
    path = folder / CURVE
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return [Point(**json.loads(line)) for line in lines if line.endswith("\n")]


def add_point(folder: Path, point: Point) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CURVE).open("a", encoding="utf-8") as curve:
        curve.write(_line(point))


def _line(point: Point) -> str:
    return json.dumps(asdict(point)) + "\n"


def _saved(folder: Path, recipe: Recipe) -> dict[str, Any]:
    newest = torch.load(folder / CHECKPOINT, weights_only=True)
    # What has decayed is no start for a longer run.
    decayed = newest["tokens"] > newest["planned"] - newest["decay"]
    if decayed and newest["planned"] < recipe.tokens and (folder / PLATEAU).exists():
        return torch.load(folder / PLATEAU, weights_only=True)
    return newest


def _exported(folder: Path) -> dict[str, Any]:
    """The exported weights in `folder` as a checkpoint without an optimiser."""
    path = folder / SINGLE_FILE
    if not path.is_file():
        raise BadInput(f"{folder} holds neither a run nor exported weights: name the folder of one.")
    metadata = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))
    return {
        "weights": {name.removeprefix("model.decoder."): value for name, value in load_file(path).items()},
        "step": metadata.get("trained_steps", 0),
        "tokens": metadata.get("trained_tokens", 0),
        "seconds": 0.0,
    }


def _state(
    recipe: Recipe, folder: Path, seed: int, device: torch.device, saved: dict[str, Any] | None
) -> TrainingState:
    module: Any = new_model(recipe.shape, seed)
    module.to(device).requires_grad_(False)
    parameters = trained_parameters(module)
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    state = TrainingState(module=module, optimiser=Optimiser(parameters, recipe.rates))
    if saved is not None:
        _copy(saved["weights"], parameters, folder)
        if "optimiser" in saved:
            state.optimiser.restore(saved["optimiser"])
        state.step, state.tokens, state.seconds = saved["step"], saved["tokens"], saved["seconds"]
        # A longer run averages later weights.
        if state.tokens > recipe.averaged_from:
            state.mean = {name: each.to(device) for name, each in saved.get("mean", {}).items()}
            state.averaged = saved.get("averaged", 0)
    return state


@torch.no_grad()
def _copy(weights: dict[str, torch.Tensor], parameters: dict[str, torch.nn.Parameter], origin: Path) -> None:
    for name, parameter in parameters.items():
        if name not in weights or weights[name].shape != parameter.shape:
            raise BadInput(f"{origin} holds a model of another shape: use the recipe that it was trained with.")
        parameter.copy_(weights[name])
