"""The tiny released-shape model as the engine sees it, and loops to drive it."""

import dataclasses
from pathlib import Path
from typing import Any

import torch

from engine.common.request import Draft
from engine.fill.canvas import Canvas
from engine.fill.denoise import denoise
from engine.fill.loading import load
from engine.fill.sampling import Policies
from engine.models.gemma.model import DiffusionGemma


class Nowhere:
    """A context that nobody looks at."""

    length = 1


def tiny_model(path: Path, **facts: Any) -> DiffusionGemma:
    """Loaded from its files; `facts` replace what they say."""
    model = load(str(path), "cpu").model
    assert isinstance(model, DiffusionGemma)
    model.info = dataclasses.replace(model.info, **facts)
    return model


def signal_of(model: Any, logits: torch.Tensor) -> torch.Tensor:
    """What a step is conditioned on where the last one's processed logits were these: [F, E] for [F, V]."""
    return logits.softmax(dim=-1) @ model.head.table.float()


def settle(
    model: DiffusionGemma, canvas: Canvas, policies: Policies, generator: torch.Generator, **options: Any
) -> Canvas:
    """Denoise to the end."""
    steps = list(states(model, canvas, policies, generator, **options))
    return steps[-1] if steps else canvas


def states(model: DiffusionGemma, canvas: Canvas, policies: Policies, generator: torch.Generator, **options: Any):
    """The canvas after each step; the same object every time."""
    loop = denoise(
        canvas, policies, model.info.noise, generator, draft=lambda state: Draft(step=state.step, text=""), **options
    )
    try:
        step = next(loop)
        while True:
            step = loop.send(model.step(step.rows))
            yield canvas
    except StopIteration:
        yield canvas
