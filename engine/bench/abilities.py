"""What a model needs so that its speed can be taken apart, and the ways that a step of it can go."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from engine.bench.products import Product
from engine.models.base import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKind:
    """One way that a step can go."""

    name: str
    run: Callable[[], object]
    products: Sequence[Product]
    """Its matrix products."""
    before: Callable[[], None] | None = None
    """Makes the next run go the same way."""


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
