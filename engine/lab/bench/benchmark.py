"""Runs all parts of the benchmark, or those that were requested."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import torch

from engine.lab.bench.coder import CODER, CoderFill, CoderTask, coder_figures, coder_fills, coder_prefill
from engine.lab.bench.fills import END_TO_END, GAPS, CodeGaps, end_to_end, gaps
from engine.lab.bench.steps import BOUNDS, GRID, KEYSTROKE, bounds, grid, keystroke
from engine.lab.bench.timing import Figure, Ratio, Stopwatch
from engine.lab.bench.workload import Forgetful, Measured
from engine.lab.peer.client import NAME, LlamaCpp
from engine.models.base import Model
from engine.models.products import threads_for

PARTS = (END_TO_END, GAPS, BOUNDS, KEYSTROKE, GRID)
"""The parts for any model with canvases. The part "coder" has to be requested, and is the only one for a model without
canvases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    repetitions: int = 20
    limit_s: float = 20.0
    """Most seconds for one figure."""
    gaps: tuple[int, ...] = (4, 10, 32, 96)
    """Widths of the gaps end to end, in tokens."""
    in_code: int = 60
    """Number of gaps in real code, of each kind."""
    width: int = 32
    """Width of the gap of the step beside its products, in tokens."""
    lengths: tuple[int, ...] = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
    longest_cold: int = 32768
    widths: tuple[int, ...] = (16, 32, 64, 128, 256)
    batches: tuple[int, ...] = (1, 2, 4, 8, 16)


QUICK = Effort(
    repetitions=5,
    limit_s=1.0,
    gaps=(16,),
    in_code=10,
    width=16,
    lengths=(256, 1024, 8192),
    longest_cold=1024,
    widths=(16, 64),
    batches=(1, 4),
)


@dataclass(slots=True, kw_only=True)
class Benchmark:
    about: dict[str, str | int]
    ratios: list[Ratio] = field(default_factory=list[Ratio])
    figures: list[Figure] = field(default_factory=list[Figure])
    fills: list[CoderFill] = field(default_factory=list[CoderFill])
    """The coder's fills one by one, so that runs can be put together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoderWork:
    """The tasks of the part "coder"."""

    tasks: Sequence[CoderTask]
    source: str
    """Where the tasks are from."""
    peer: LlamaCpp | None = None

    def about(self) -> dict[str, str | int]:
        """The conditions of its figures."""
        peer = {NAME: self.peer.about.version, f"{NAME} built for": self.peer.about.system} if self.peer else {}
        return {"gaps": self.source, **peer}


def run(
    model: Forgetful,
    effort: Effort,
    parts: Iterable[str],
    on_part: Callable[[str], None] = lambda part: None,
    code: CodeGaps | None = None,
    coder: CoderWork | None = None,
) -> Benchmark:
    """Measure each part once, calling `on_part` before each. Without `code` gaps in real code are left out; "coder"
    needs `coder`, the other parts a model that is `Measured`."""
    watch = Stopwatch(repetitions=effort.repetitions, limit_s=effort.limit_s, device=model.info.device)
    made = Benchmark(about=about(model))
    measured = _measured(model, watch, effort, code) if isinstance(model, Measured) else {}
    for part in dict.fromkeys(parts):
        on_part(part)
        if part == CODER and coder:
            made.about |= coder.about()
            made.fills = list(coder_fills(model, coder.tasks, coder.peer))
            figures, ratios = coder_figures(made.fills, model.info.parameters)
            figures += coder_prefill(model, coder.peer, watch)
        else:
            figures, ratios = measured[part]()
        made.figures += figures
        made.ratios += ratios
    return made


def _measured(
    model: Measured, watch: Stopwatch, effort: Effort, code: CodeGaps | None
) -> dict[str, Callable[[], tuple[list[Figure], list[Ratio]]]]:
    # Fills see to that themselves.
    served = threads_for(model.info.parameters, model.info.device)
    return {
        END_TO_END: lambda: end_to_end(model, watch, effort.gaps),
        GAPS: lambda: gaps(model, code, effort.in_code) if code else ([], []),
        BOUNDS: served(lambda: bounds(model, watch, effort.width)),
        KEYSTROKE: served(lambda: keystroke(model, watch, effort.lengths, effort.longest_cold)),
        GRID: served(lambda: grid(model, watch, effort.widths, effort.batches)),
    }


def about(model: Model) -> dict[str, str | int]:
    """The conditions of the figures."""
    info = model.info
    gpu = info.device.startswith("cuda")
    return {
        "model": info.name,
        "parameters": info.parameters,
        "device": torch.cuda.get_device_name(info.device) if gpu else _processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "dtype": info.dtype,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
