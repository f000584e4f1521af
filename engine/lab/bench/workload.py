"""What a benchmark gives a model to do: a gap in real code, contexts of a length, canvases of a width."""

from __future__ import annotations

import inspect
import json.decoder
import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch

from engine.common.request import FillRequest
from engine.lab.bench.random_models import NumberedVocabulary
from engine.models.base import Context, Model, Rows
from engine.models.static_steps import StaticSteps

_TEXT_TOKENS = 2000


@runtime_checkable
class Measured(Model, Protocol):
    """Its speed can be taken apart."""

    remembers: bool
    """Whether its steps use what steps before them computed; off, every step computes everything."""
    static: StaticSteps | None
    """On CUDA, what steps may go through instead of launching everything."""

    @property
    def reads(self) -> int | None:
        """Tokens of context and canvas that it can look at; None: as many as memory holds."""
        ...

    def forget(self) -> None:
        """Let go of all contexts, as if no request had come before."""
        ...


@contextmanager
def forgetful(model: Measured) -> Generator[None]:
    """Every step computes everything."""
    before, model.remembers = model.remembers, False
    try:
        yield
    finally:
        model.remembers = before


@contextmanager
def launched(model: Measured) -> Generator[None]:
    """Every product is launched where it can be seen, none by a graph."""
    before, model.static = model.static, None
    try:
        yield
    finally:
        model.static = before


def request_for(model: Model, width: int) -> FillRequest:
    """A gap of `width` tokens in the middle of real code, or of numbers where the model reads numbers."""
    if isinstance(model.vocabulary, NumberedVocabulary):
        words = [str(token) for token in token_ids(model, _TEXT_TOKENS)]
        return FillRequest(prefix=" ".join(words[:-200]), suffix=" ".join(words[-200:]), width=width)
    text = inspect.getsource(json.decoder)
    at = text.index("\n", len(text) // 2) + 1
    return FillRequest(prefix=text[:at], suffix=text[at:], language="python", width=width)


def token_ids(model: Model, count: int, seed: int = 0) -> list[int]:
    """Tokens at random, no control tokens among them."""
    rng, banned = random.Random(seed), {*model.info.forbidden_ids, model.info.pad_id}
    ids: list[int] = []
    while len(ids) < count:
        token = rng.randrange(model.info.noise.vocab_size)
        ids += [] if token in banned else [token]
    return ids


def room_beside(model: Measured, canvas: int, wanted: int) -> int:
    """Tokens of context that the model can look at beside a canvas as wide, at most `wanted`; 0 where there is none."""
    return wanted if model.reads is None else max(0, min(wanted, model.reads - canvas))


def rows_of(model: Model, context: Context, *, gap: int, pinned: int, batch: int = 1, first: bool = False) -> Rows:
    """Canvases [gap | pinned] at their `first` step, or later, when what the last step said conditions them. Nothing is
    known of the gap."""
    device = model.info.device
    # As the candidates of one gap: the suffix is the same.
    ids = torch.tensor(token_ids(model, gap + pinned), device=device).repeat(batch, 1)
    open_ = torch.zeros(batch, gap + pinned, dtype=torch.bool, device=device)
    open_[:, :gap] = True
    # Drawn on the CPU: the same canvas on every device.
    ids[:, :gap] = model.info.noise.draw((batch, gap), torch.Generator().manual_seed(0)).to(device)
    generator = torch.Generator(device=device).manual_seed(0)
    size = model.head.table.shape[1]
    return Rows(
        contexts=[context] * batch,
        canvas=ids,
        lengths=[gap + pinned] * batch,
        open=open_,
        self_conditioning=None if first else torch.randn(batch * gap, size, generator=generator, device=device),
        conditioned=[not first] * batch,
    )
