"""(b) One denoise step beside what bounds it; (d) over widths and batches."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.bench.products import products_of, run_all
from engine.bench.timing import Figure, Ratio, Spread, Stopwatch
from engine.bench.workload import rows_of, token_ids
from engine.models.diffusion_gemma import DiffusionGemma

BOUNDS, GRID = "step", "widths and batches"
CONTEXT = 512
_PINNED = 32
_COPIED_NBYTES = 128 << 20


def bounds(model: DiffusionGemma, watch: Stopwatch, gap: int) -> tuple[list[Figure], list[Ratio]]:
    """A step with `gap` open positions, its matrix products, and the time to read its weights once."""
    rows = rows_of(model, model.encode(token_ids(model, CONTEXT)), gap=gap, pinned=_PINNED)
    products = products_of(model, rows)
    step, alone = watch.time(lambda: model.step(rows)), watch.time(lambda: run_all(products))
    nbytes = sum(product.weight_nbytes for product in products)
    read = _read_time(nbytes, watch)
    name = f"reading its {nbytes / 1e6:.0f} MB of weights"
    return (
        [
            Figure(part=BOUNDS, name=each, spread=spread, at=gap + _PINNED)
            for each, spread in (("step", step), ("matrix products alone", alone), (name, read))
        ],
        [
            Ratio(name="step by its matrix products", value=step.median / alone.median, aim="<= 3"),
            Ratio(name="step by reading its weights", value=step.median / read.median),
        ],
    )


def grid(
    model: DiffusionGemma, watch: Stopwatch, widths: Sequence[int], batches: Sequence[int]
) -> tuple[list[Figure], list[Ratio]]:
    """A step over canvases of these widths, all open but a pinned eighth, in these batches."""
    context = model.encode(token_ids(model, CONTEXT))
    figures: list[Figure] = []
    for width in widths:
        for batch in batches:
            rows = rows_of(model, context, gap=width - width // 8, pinned=width // 8, batch=batch)
            spread = watch.time(lambda rows=rows: model.step(rows))
            figures.append(Figure(part=GRID, name="step", spread=spread, at=width, batch=batch))
    by = {(figure.at, figure.batch): figure.spread.median for figure in figures}
    width, most = widths[0], max(batches)
    several = Ratio(
        name=f"{most} canvases of {width} at once by one alone, each", value=by[width, most] / most / by[width, 1]
    )
    return figures, [several]


def _read_time(nbytes: int, watch: Stopwatch) -> Spread:
    """Of `nbytes` of memory, at the rate at which this device copies."""
    source = torch.zeros(_COPIED_NBYTES, dtype=torch.uint8, device=watch.device)
    target = torch.empty_like(source)
    copied = watch.time(lambda: target.copy_(source))
    # A copy reads every byte and writes it.
    share = nbytes / (2 * _COPIED_NBYTES)
    return Spread(median=copied.median * share, low=copied.low * share, high=copied.high * share, count=copied.count)
