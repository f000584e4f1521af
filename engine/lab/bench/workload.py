"""The work of a benchmark: a gap in real code, contexts of a length, canvases of a width."""

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
class Forgetful(Model, Protocol):
    def forget(self) -> None:
        """Drop all cached contexts."""
        ...


@runtime_checkable
class Measured(Forgetful, Protocol):
    """A model whose passes can be measured one by one."""

    remembers: bool
    """Whether steps use what earlier steps computed; when off, every step computes everything."""
    static: StaticSteps | None
    """CUDA graphs that steps may use."""

    @property
    def reads(self) -> int | None:
        """Most tokens of context and canvas; None: as many as memory holds."""
        ...


@contextmanager
def forgetful(model: Measured) -> Generator[None]:
    """Within the block every step computes everything."""
    before, model.remembers = model.remembers, False
    try:
        yield
    finally:
        model.remembers = before


@contextmanager
def launched(model: Measured) -> Generator[None]:
    """Within the block every product is launched by itself, none by a graph."""
    before, model.static = model.static, None
    try:
        yield
    finally:
        model.static = before


def request_for(model: Model, width: int) -> FillRequest:
    """A request with a gap of `width` tokens in real code, or in numbers for a model whose tokens are numbers."""
    if isinstance(model.vocabulary, NumberedVocabulary):
        words = [str(token) for token in token_ids(model, _TEXT_TOKENS)]
        return FillRequest(prefix=" ".join(words[:-200]), suffix=" ".join(words[-200:]), width=width)
    text = inspect.getsource(json.decoder)
    at = text.index("\n", len(text) // 2) + 1
    return FillRequest(prefix=text[:at], suffix=text[at:], language="python", width=width)


def token_ids(model: Model, count: int, seed: int = 0) -> list[int]:
    """Random tokens without control tokens."""
    rng, banned = random.Random(seed), {*model.info.forbidden_ids, model.info.pad_id}
    ids: list[int] = []
    while len(ids) < count:
        token = rng.randrange(model.info.noise.vocab_size)
        ids += [] if token in banned else [token]
    return ids


def room_beside(model: Measured, canvas: int, wanted: int) -> int:
    """The length of the longest context beside a canvas, at most `wanted` tokens; 0 where there is no room for one."""
    return wanted if model.reads is None else max(0, min(wanted, model.reads - canvas))


def rows_of(model: Model, context: Context, *, gap: int, pinned: int, batch: int = 1, first: bool = False) -> Rows:
    """Canvases [gap | pinned] of which nothing is known, at their `first` step or at a later one, which is conditioned
    on the step before."""
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
