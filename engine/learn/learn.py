"""The tuning loop: trains low-rank pairs as long as the loss on held-out files falls. A run that is cut off loses only
what came after the last save."""

from __future__ import annotations

import math
import pickle
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from engine.common.errors import EngineError
from engine.common.files import replacing
from engine.learn.corpus import Split
from engine.learn.lora import Trainable
from engine.learn.optimise import apply, schedule
from engine.learn.training import Batch, Sitting, step_losses, to_device, total_loss
from engine.learn.training_recipe import Recipe
from engine.models.adapters.low_rank import LowRankLinear

CHECKPOINT = "checkpoint.pt"
RATE, WIDE = 0.004, 384
"""Peak learning rate of AdamW, for hidden states of up to so many numbers; it is lower for wider ones."""
WARM_UP = 20
"""Steps."""
CHECKS = 12
"""How often a run measures the held-out files, after a first time at its beginning."""
LOOKS = 4
"""Batches of each measurement, always the same."""
PATIENCE = 6
"""Measurements in a row without a lower loss that end a run. A high rate first makes a model worse whose own rate had
fallen to nothing; as the rate falls that comes back, and more."""


class Teacher(Protocol):
    """Makes the batch of any step; the same arguments give the same batch."""

    def batch(self, step: int, split: Split = "train") -> Batch: ...


@dataclass(slots=True, kw_only=True)
class TuningState:
    """How far a run has come."""

    step: int = 0
    seconds: float = 0.0
    """Time spent training."""
    first_loss: float = math.nan
    """Loss on held-out files before the first step, in nats a token."""
    best_loss: float = math.inf
    best_step: int = 0
    worse: int = 0
    """Measurements in a row that found no lower loss."""
    best: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """The pairs at the step with the lowest loss."""

    @property
    def gained(self) -> bool:
        return self.best_loss < self.first_loss

    def look(self, loss: float, parameters: Mapping[str, Tensor]) -> None:
        """Take note of a held-out loss of the current pairs."""
        if math.isnan(self.first_loss):
            self.first_loss = loss
        self.worse += 1
        if loss < self.best_loss:
            self.best_loss, self.best_step, self.worse = loss, self.step, 0
            self.best = {name: each.detach().clone() for name, each in parameters.items()}


def learn(
    network: Trainable,
    pairs: Mapping[str, LowRankLinear],
    teacher: Teacher,
    recipe: Recipe,
    folder: Path,
    sitting: Sitting,
    report: Callable[[str], None],
    should_pause: Callable[[], bool] = lambda: False,
) -> TuningState | None:
    """Train `pairs`, which lie in `network`, for the recipe's tokens or until the held-out loss rises. In the end they
    hold the best values.

    Goes on from the checkpoint in `folder`. Returns None where `should_pause` came first: the same call goes on. Raises
    EngineError where the disk refuses.
    """
    parameters = parameters_of(pairs)
    rate = RATE * min(1.0, WIDE / network.embeddings.weight.shape[-1])
    optimiser = torch.optim.AdamW(parameters.values(), lr=rate, betas=(0.9, 0.99), weight_decay=0.0)
    state = _opened(folder / CHECKPOINT, parameters, optimiser) or TuningState()
    steps = steps_of(recipe)
    times: deque[float] = deque(maxlen=32)
    saved = time.monotonic()
    if math.isnan(state.first_loss):
        state.look(held_out(network, teacher, recipe, sitting), parameters)
    while state.step < steps and state.worse < PATIENCE:
        if should_pause():
            _save(folder / CHECKPOINT, parameters, optimiser, state)
            return None
        began = time.monotonic()
        batch = to_device(teacher.batch(state.step), sitting.device)
        total_loss(step_losses(network, batch, sitting), recipe).backward()
        apply(optimiser, parameters.values(), rate * schedule(state.step, 1 - state.step / steps, WARM_UP))
        state.step += 1
        if state.step % max(1, steps // CHECKS) == 0 or state.step == steps:
            state.look(held_out(network, teacher, recipe, sitting), parameters)
            left_s = (steps - state.step) * statistics.median([*times, time.monotonic() - began])
            best = f"{state.best_loss:.3f} at step {state.best_step}, {state.first_loss:.3f} before"
            report(f"step {state.step} of {steps}: held-out loss {best}; {spent(left_s)} left")
        times.append(time.monotonic() - began)
        state.seconds += times[-1]
        if time.monotonic() - saved > sitting.save_every_s:
            saved = time.monotonic()
            _save(folder / CHECKPOINT, parameters, optimiser, state)
    _save(folder / CHECKPOINT, parameters, optimiser, state)
    put(state.best, parameters)
    return state


def steps_of(recipe: Recipe) -> int:
    return max(1, recipe.tokens // recipe.step_tokens)


def parameters_of(pairs: Mapping[str, LowRankLinear]) -> dict[str, nn.Parameter]:
    """The trained tensors, by the names `LAYER.lora_A` and `LAYER.lora_B`."""
    return {f"{name}.{each}": getattr(pair, each) for name, pair in pairs.items() for each in ("lora_A", "lora_B")}


@torch.no_grad()
def put(tensors: Mapping[str, Tensor], parameters: Mapping[str, nn.Parameter]) -> None:
    """Copy values into the pairs, by the names of `parameters_of`."""
    for name, parameter in parameters.items():
        parameter.copy_(tensors[name])


@torch.no_grad()
def held_out(network: Trainable, teacher: Teacher, recipe: Recipe, sitting: Sitting) -> float:
    """Mean loss of a few held-out batches, in nats a token."""
    looks = (to_device(teacher.batch(look, "held-out"), sitting.device) for look in range(LOOKS))
    return statistics.fmean(float(total_loss(step_losses(network, look, sitting), recipe)) for look in looks)


def spent(seconds: float) -> str:
    """A duration for people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _save(
    path: Path, parameters: Mapping[str, nn.Parameter], optimiser: torch.optim.Optimizer, state: TuningState
) -> None:
    held = {
        "pairs": {name: each.detach() for name, each in parameters.items()},
        "optimiser": optimiser.state_dict(),
        "state": asdict(state),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            torch.save(held, draft)
    except (OSError, RuntimeError) as error:
        # torch tells of a full disk by an error of its own.
        raise EngineError(
            f"{path.parent} can't be written to ({error}): make room on its disk and run the same command again; it "
            "goes on from what was saved last."
        ) from None


def _opened(path: Path, parameters: Mapping[str, nn.Parameter], optimiser: torch.optim.Optimizer) -> TuningState | None:
    """The state of a checkpoint; None where there is none."""
    if not path.exists():
        return None
    try:
        held = torch.load(path, weights_only=True)
        put(held["pairs"], parameters)
        optimiser.load_state_dict(held["optimiser"])
        return TuningState(**held["state"])
    except (OSError, RuntimeError, LookupError, TypeError, ValueError, EOFError, pickle.UnpicklingError):
        raise EngineError(f"{path} is damaged: remove it to begin anew.") from None
