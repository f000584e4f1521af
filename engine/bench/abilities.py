"""What only some models can do, beyond filling gaps. Evaluation and benchmark ask for it with `isinstance`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from engine.bench.products import Product
from engine.core.request import Filled, FillRequest
from engine.models.base import Model, Rows


@runtime_checkable
class LeftToRight(Model, Protocol):
    """Its encoder predicts next tokens: the same weights are an autoregressive model, too."""

    def next_tokens(self, ids: Sequence[int]) -> Iterator[int]:
        """Greedy next tokens behind `ids`, with a cache of keys and values, without end."""
        ...


@runtime_checkable
class Generating(Model, Protocol):
    """transformers has a `generate` for it, which does what we do in another way."""

    def generate(self, request: FillRequest) -> list[int]:
        """The tokens of one canvas, behind a context that holds all that is known, the suffix included."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKind:
    """One way that a step can go."""

    name: str
    run: Callable[[], object]
    products: Sequence[Product]
    """Its matrix products."""
    before: Callable[[], None] | None = None
    """Makes the next run go the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """How others fill a gap with the same weights."""

    name: str
    told: str
    """What is the same and what is not."""
    aim: str = ""
    """How much longer than ours it should take, such as ">= 4"."""
    run: Callable[[], object]


@runtime_checkable
class Measured(Model, Protocol):
    """Its speed can be taken apart."""

    @property
    def reads(self) -> int | None:
        """Tokens of context and canvas that it can look at; None: as many as memory holds."""
        ...

    def forget(self) -> None:
        """Let go of all contexts, as if no request had come before."""
        ...

    def step_kinds(self, rows: Rows) -> list[StepKind]:
        """The ways that a step over `rows` can go, that which computes most first."""
        ...

    def reference(self, request: FillRequest, ours: Filled) -> Reference:
        """What to hold `ours`, our answer to `request`, against."""
        ...


class Remembering(Protocol):
    """Its steps use what steps before them computed."""

    remembers: bool
    """Off: every step computes everything."""


@contextmanager
def forgetful(model: Remembering) -> Generator[None]:
    """Every step computes everything."""
    before, model.remembers = model.remembers, False
    try:
        yield
    finally:
        model.remembers = before
