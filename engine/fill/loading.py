"""From a name to a model that fills gaps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engine.common import torch_import
from engine.common.errors import BadInput, EngineError, OutOfMemory, is_out_of_memory, is_panic
from engine.common.names import AUTO, BUNDLED, Device
from engine.common.request import Draft, Filled, FillRequest
from engine.fill.answering import answering
from engine.fill.executor import drive
from engine.models.adapters.index import Adapters
from engine.models.addressed import open_addressed
from engine.models.base import Model, check_info, check_prompt
from engine.models.checkpoints.catalog import find
from engine.models.checkpoints.choice import resolved
from engine.models.checkpoints.directory import first_line, loading
from engine.models.checkpoints.placement import place, this_machine
from engine.models.registry import family_named
from engine.models.weights import OnPercent

_QUICK_NBYTES = 1 << 30
"""Smaller models load too fast for a progress bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Infiller:
    """A loaded model. Not thread-safe: one thread owns it."""

    adapters: Adapters

    @property
    def model(self) -> Model:
        """The model without an adapter."""
        return self.adapters.model

    def fill(self, prefix: str, suffix: str, **more: Any) -> Filled:
        """Fill the gap between `prefix` and `suffix`; the other parameters are those of FillRequest.

        Raises BadInput for a request that can't be met as asked, OutOfMemory for one too big for the device.
        """
        return self.answer(FillRequest(prefix=prefix, suffix=suffix, **more))

    def answer(self, request: FillRequest, on_draft: Callable[[Draft], None] | None = None) -> Filled:
        """Answer any request, calling `on_draft` with the canvas after each step. Raises as `fill` does."""
        with _failures("Filling this gap", "ask for fewer or shorter candidates, or use --device cpu"):
            model = self.adapters.model_for(request.folder)
            return drive(model, answering(model, request), on_draft)

    def by_canvas(self, request: FillRequest, on_draft: Callable[[Draft], None] | None = None) -> Filled:
        """Fill a gap by a coder's own canvas alone. Raises BadInput for a model that has none."""
        model = self.model
        if model.canvas is None:
            raise BadInput(f"{model.info.name} has no canvas beside a causal head: use the published coder-0.5b.")
        return drive(model.canvas, answering(model.canvas, request), on_draft)


def load(name: str = AUTO, device: Device = "auto", on_percent: OnPercent | None = None) -> Infiller:
    """Load "auto", "bundled", a coder by its name, a model directory, a GGUF or a Hub id from the cache. No network.
    `on_percent` is told how much of the weights is read; without it, a big model shows a bar on a terminal.

    Raises ModelError for a model that is unknown, incomplete, unsafe or too big, OutOfMemory where memory ran out.
    """
    name = resolved(name, beside=True)
    with _failures(f"Loading {name}", "close other programs, or use a smaller model"):
        return Infiller(adapters=Adapters(open_addressed(name) or _load(name, device, on_percent)))


def _load(name: str, device: Device, on_percent: OnPercent | None) -> Model:
    checkpoint = find(name)
    with loading(name), _bar(shown=on_percent is None and checkpoint.nbytes > _QUICK_NBYTES) as show:
        placement = place(checkpoint, device, this_machine())
        if name != BUNDLED or placement.device != "cpu":
            torch_import.complete()
        model = family_named(checkpoint.family).open(checkpoint, placement, on_percent or show)
        check_prompt(model)
        check_info(model.info)
    return model


@contextmanager
def _bar(*, shown: bool) -> Generator[OnPercent | None]:
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Loading weights", total=100)
        yield lambda percent: progress.update(task, completed=percent)


@contextmanager
def _failures(doing: str, way_out: str) -> Generator[None]:
    try:
        yield
    except BaseException as error:  # a panic of Rust is no Exception
        if is_out_of_memory(error):
            raise OutOfMemory(f"{doing} ran out of memory: {way_out}.") from error
        if is_panic(error):
            raise EngineError(f"{doing} failed inside a library ({first_line(error)}): use another model.") from error
        raise
