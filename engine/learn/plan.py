"""Time and memory of a tuning run, estimated before it starts: one row of a step is tried, and nothing is learnt from
it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import psutil
import torch
from torch import Tensor

from engine.common.errors import OutOfMemory
from engine.common.sizes import binary_bytes
from engine.learn.learn import CHECKS, LOOKS, parameters_of, steps_of
from engine.learn.lora import Trainable, trainable
from engine.learn.loss import CHUNK, CHUNK_CUDA
from engine.learn.prompted import TuningLessons
from engine.learn.training import Batch, Sitting, step_losses, to_device, total_loss
from engine.learn.training_recipe import Recipe
from engine.models.adapters.low_rank import LowRankLinear
from engine.models.quantized.layers import packed_in

_PER_PARAMETER = 5 * torch.float32.itemsize
"""Bytes for each trained number: itself, its gradient, two of the optimiser, and the best one so far."""
_LOGITS = 4
"""Numbers that the loss holds for each logit of its chunk."""
_AT_ONCE = 3
"""Copies of the largest tensor that the backward pass holds beside what the forward pass kept."""
_TIMED = 3
"""Rows that are timed."""
_LOOK_SHARE = 0.4
"""Time of a batch of a measurement, as a share of a step's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningPlan:
    """Memory in bytes, time in seconds."""

    resident: int
    """What this process holds already, the model included."""
    training: int
    """What training adds."""
    available: int
    """What the machine has left."""
    step_s: float
    steps: int

    @property
    def nbytes(self) -> int:
        return self.resident + self.training

    @property
    def seconds(self) -> float:
        """Time of training."""
        return self.step_s * (self.steps + _LOOK_SHARE * LOOKS * (CHECKS + 1))

    def check(self) -> None:
        """Raises OutOfMemory where the run does not fit."""
        if self.training > self.available:
            raise OutOfMemory(
                f"Tuning needs {binary_bytes(self.training)} beside what is in use, and {binary_bytes(self.available)} "
                "are free: close other programs, give the engine's memory back by `dg-lsp engine stop`, or use a "
                "smaller model."
            )


def plan(
    network: Trainable, pairs: Mapping[str, LowRankLinear], lessons: TuningLessons, sitting: Sitting
) -> TuningPlan:
    """Try one row of the widest step, forward and backward; the pairs stay as they are."""
    recipe = lessons.recipe
    _import_all()
    widest = max(recipe.contexts)
    row, narrow = _row(lessons, widest, sitting)
    rows = recipe.rows(widest)
    kept, largest = _kept(network, row, narrow, sitting)
    if packed_in(network.module):
        # What one layer keeps while it is computed again.
        plain, largest = _kept(trainable(network, recompute=False), row, narrow, sitting)
        kept += plain // len(network.layers)
    row_s = [_row_s(network, lessons, recipe.contexts[0], sitting) for _ in range(_TIMED)]
    parameters = parameters_of(pairs).values()
    for each in parameters:
        each.grad = None
    on_gpu = sitting.device.type == "cuda"
    chunk = CHUNK_CUDA if on_gpu else CHUNK
    logits = _LOGITS * chunk * recipe.shape.vocab * torch.float32.itemsize
    own = _PER_PARAMETER * sum(each.numel() for each in parameters)
    return TuningPlan(
        # What the row has had loaded or laid out stays.
        resident=torch.cuda.memory_allocated(sitting.device) if on_gpu else psutil.Process().memory_info().rss,
        training=own + rows * (kept + _AT_ONCE * largest) + logits,
        available=torch.cuda.mem_get_info(sitting.device)[0] if on_gpu else psutil.virtual_memory().available,
        # The first one warms up.
        step_s=min(row_s) * recipe.step_tokens / recipe.contexts[0],
        steps=steps_of(recipe),
    )


def _import_all() -> None:
    """Import what torch imports at an optimiser's first step, which takes a hundred megabytes whatever is trained."""
    one = torch.nn.Parameter(torch.zeros(1))
    one.sum().backward()
    torch.optim.AdamW([one], lr=0.0).step()


def _row(lessons: TuningLessons, width: int, sitting: Sitting) -> tuple[Batch, Recipe]:
    """One row of this width, and a recipe of such rows alone."""
    recipe = replace(lessons.recipe, contexts=(width,), step_tokens=width)
    return to_device(replace(lessons, recipe=recipe).batch(0), sitting.device), recipe


def _row_s(network: Trainable, lessons: TuningLessons, width: int, sitting: Sitting) -> float:
    """Time of one row, from its making to its gradients."""
    on_gpu = sitting.device.type == "cuda"
    # Processor time, as others are at work as well; of a GPU only the clock tells.
    now_s = time.perf_counter if on_gpu else time.process_time
    began = now_s()
    row, recipe = _row(lessons, width, sitting)
    made = now_s()
    total_loss(step_losses(network, row, sitting), recipe).backward()
    if on_gpu:
        torch.cuda.synchronize(sitting.device)
        return now_s() - began
    # One thread makes it, all of them compute.
    return made - began + (now_s() - made) / torch.get_num_threads()


def _kept(network: Trainable, row: Batch, recipe: Recipe, sitting: Sitting) -> tuple[int, int]:
    """Bytes that the forward pass keeps for the backward pass, weights aside, and those of the largest such tensor."""
    weights = {each.untyped_storage().data_ptr() for each in (*network.module.parameters(), *network.module.buffers())}
    held: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        # Held while it is counted, so that no memory is counted twice or used again.
        loss = total_loss(step_losses(network, row, sitting), recipe)
    found = sum(held.values()), max(held.values(), default=0)
    del loss
    return found
