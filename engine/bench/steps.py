"""(b) One denoise step beside what bounds it; (d) over widths and batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from engine.bench.abilities import Measured, StepKind
from engine.bench.families import step_kinds
from engine.bench.products import run_all
from engine.bench.timing import Figure, Ratio, Spread, Stopwatch
from engine.bench.workload import room_beside, rows_of, token_ids

BOUNDS, GRID = "step", "widths and batches"
CONTEXT = 512
_PINNED = 32
_COPIED_NBYTES = 128 << 20


def bounds(model: Measured, watch: Stopwatch, gap: int) -> tuple[list[Figure], list[Ratio]]:
    """A step with `gap` open positions, in each way it can go, its matrix products, and the time to read its weights
    once."""
    width = gap + _PINNED
    context = model.encode(token_ids(model, room_beside(model, width, CONTEXT)))
    figures: list[Figure] = []
    ratios: list[Ratio] = []
    medians: dict[str, float] = {}
    for kind in step_kinds(model, rows_of(model, context, gap=gap, pinned=_PINNED)):
        step, alone, read = spreads = _bounded(kind, watch)
        medians[kind.name] = step.median
        figures += [
            Figure(part=BOUNDS, name=name, spread=spread, at=width)
            for name, spread in zip(_names(kind), spreads, strict=True)
        ]
        ratios += [
            Ratio(name=f"{kind.name} by its matrix products", value=step.median / alone.median, aim="<= 3"),
            Ratio(name=f"{kind.name} by reading its weights", value=step.median / read.median),
        ]
    return figures, [*ratios, *_among(medians)]


def grid(
    model: Measured, watch: Stopwatch, widths: Sequence[int], batches: Sequence[int]
) -> tuple[list[Figure], list[Ratio]]:
    """A step over canvases of these widths, all open but a pinned eighth, in these batches."""
    figures: list[Figure] = []
    for width in widths:
        context = model.encode(token_ids(model, room_beside(model, width, CONTEXT)))
        for batch in batches:
            rows = rows_of(model, context, gap=width - width // 8, pinned=width // 8, batch=batch)
            for kind in step_kinds(model, rows):
                spread = watch.time(kind.run, before=kind.before)
                figures.append(Figure(part=GRID, name=kind.name, spread=spread, at=width, batch=batch))
    narrow, most = widths[0], max(batches)
    by = {(each.name, each.batch): each.spread.median for each in figures if each.at == narrow}
    return figures, [
        Ratio(
            name=f"{name}: {most} canvases of {narrow} at once by one alone, each", value=several / most / by[name, 1]
        )
        for (name, batch), several in by.items()
        if batch == most
    ]


def _bounded(kind: StepKind, watch: Stopwatch) -> tuple[Spread, Spread, Spread]:
    step = watch.time(kind.run, before=kind.before)
    return step, watch.time(lambda: run_all(kind.products)), _read_time(_weights_nbytes(kind), watch)


def _names(kind: StepKind) -> tuple[str, str, str]:
    megabytes = _weights_nbytes(kind) / 1e6
    return kind.name, f"{kind.name}: matrix products alone", f"{kind.name}: reading its {megabytes:.0f} MB of weights"


def _weights_nbytes(kind: StepKind) -> int:
    return sum(product.weight_nbytes for product in kind.products)


def _among(medians: dict[str, float]) -> Iterator[Ratio]:
    """The way that computes most by each of the others."""
    most, *others = medians
    for name in others:
        yield Ratio(name=f"{most} by {name}", value=medians[most] / medians[name])


def _read_time(nbytes: int, watch: Stopwatch) -> Spread:
    """Of `nbytes` of memory, at the rate at which this device copies."""
    source = torch.zeros(_COPIED_NBYTES, dtype=torch.uint8, device=watch.device)
    target = torch.empty_like(source)
    copied = watch.time(lambda: target.copy_(source))
    # A copy reads every byte and writes it.
    share = nbytes / (2 * _COPIED_NBYTES)
    return Spread(median=copied.median * share, low=copied.low * share, high=copied.high * share, count=copied.count)
