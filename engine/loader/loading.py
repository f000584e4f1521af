"""From a name to a model that fills gaps."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.checkpoints.placement import place, this_machine
from engine.core.errors import OutOfMemory, is_out_of_memory
from engine.core.names import BUNDLED, ORACLE, Device
from engine.core.request import Draft, Filled, FillRequest
from engine.decoding.executor import drive
from engine.edit.answering import answering
from engine.loader.catalog import find
from engine.models.base import Model
from engine.models.registry import family_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Infiller:
    """A loaded model. Not thread-safe: one thread owns it."""

    model: Model
    load_ms: float
    """How long loading took, imports of this process not included."""

    def fill(
        self,
        prefix: str,
        suffix: str,
        *,
        language: str = "",
        n: int = 1,
        deadline_ms: float | None = None,
        seed: int = 0,
        old: str = "",
        max_tokens: int = 96,
        width: int | None = None,
    ) -> Filled:
        """Fill the gap between `prefix` and `suffix`; the parameters are those of FillRequest.

        Raises BadInput for a request that can't be met as asked, OutOfMemory for one too big for the device.
        """
        request = FillRequest(
            prefix=prefix,
            suffix=suffix,
            language=language,
            old=old,
            n=n,
            max_tokens=max_tokens,
            width=width,
            deadline_ms=deadline_ms,
            seed=seed,
        )
        return self.answer(request)

    def answer(self, request: FillRequest, on_draft: Callable[[Draft], None] | None = None) -> Filled:
        """Do what a request asks for, telling `on_draft` the canvas after each step. Raises as `fill` does."""
        with _memory_errors("Filling this gap", "ask for fewer or shorter candidates, or use --device cpu"):
            return drive(self.model, answering(self.model, request), on_draft)


def load(name: str = BUNDLED, device: Device = "auto") -> Infiller:
    """Load "bundled", a model directory or a Hub id from the local cache. No network.

    Raises ModelError for a model that is unknown, incomplete, unsafe or too big, OutOfMemory where memory ran out.
    """
    began = time.perf_counter()
    with _memory_errors(f"Loading {name}", "close other programs, or use a smaller model"):
        model = _oracle(name) if name.startswith(ORACLE) else _load(name, device)
    return Infiller(model=model, load_ms=(time.perf_counter() - began) * 1000)


def _load(name: str, device: Device) -> Model:
    checkpoint = find(name)
    placement = place(checkpoint, device, this_machine())
    return family_named(checkpoint.family).open(checkpoint, placement)


def _oracle(name: str) -> Model:
    from engine.models.oracle.model import read_oracle

    return read_oracle(Path(name.removeprefix(ORACLE)))


@contextmanager
def _memory_errors(doing: str, way_out: str) -> Generator[None]:
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemory(f"{doing} ran out of memory: {way_out}.") from error
