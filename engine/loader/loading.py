"""From a name to a model that fills gaps."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.checkpoints.directory import first_line, reading
from engine.checkpoints.placement import place, this_machine
from engine.core.errors import EngineError, OutOfMemory, is_out_of_memory, is_panic
from engine.core.names import BUNDLED, ORACLE, Device
from engine.core.request import Draft, Filled, FillRequest
from engine.decoding.executor import drive
from engine.edit.answering import answering
from engine.loader.catalog import find
from engine.models.base import Model, check_facts
from engine.models.registry import family_named

_TRIAL = FillRequest(prefix="def f(x):\n    return ", suffix="\n", language="python")


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
        with _failures("Filling this gap", "ask for fewer or shorter candidates, or use --device cpu"):
            return drive(self.model, answering(self.model, request), on_draft)


def load(name: str = BUNDLED, device: Device = "auto") -> Infiller:
    """Load "bundled", a model directory or a Hub id from the local cache. No network.

    Raises ModelError for a model that is unknown, incomplete, unsafe or too big, OutOfMemory where memory ran out.
    """
    began = time.perf_counter()
    with _failures(f"Loading {name}", "close other programs, or use a smaller model"):
        model = _oracle(name) if name.startswith(ORACLE) else _load(name, device)
    return Infiller(model=model, load_ms=(time.perf_counter() - began) * 1000)


def _load(name: str, device: Device) -> Model:
    checkpoint = find(name)
    placement = place(checkpoint, device, this_machine())
    with _offline(), reading(name):
        model = family_named(checkpoint.family).open(checkpoint, placement)
        # Now, as what is wrong with a tokenizer or a chat template may show only when they are used.
        model.prompt(_TRIAL)
    check_facts(model.facts)
    return model


@contextmanager
def _offline() -> Generator[None]:
    """Nothing that a checkpoint names is looked for on the Hub, whatever the libraries that read it would do."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _oracle(name: str) -> Model:
    from engine.models.oracle.model import read_oracle

    return read_oracle(Path(name.removeprefix(ORACLE)))


@contextmanager
def _failures(doing: str, way_out: str) -> Generator[None]:
    try:
        yield
    except BaseException as error:
        if is_out_of_memory(error):
            raise OutOfMemory(f"{doing} ran out of memory: {way_out}.") from error
        if is_panic(error):
            raise EngineError(f"{doing} failed inside a library ({first_line(error)}): use another model.") from error
        raise
