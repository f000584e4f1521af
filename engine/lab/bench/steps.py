"""The parts "step", "widths and batches" and "keystroke": one denoise step beside its matrix products, steps over other
canvases, and the time of one more token in contexts of many lengths with a first step after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from engine.lab.bench.timing import Figure, Ratio, Stopwatch
from engine.lab.bench.workload import Measured, forgetful, launched, room_beside, rows_of, token_ids
from engine.models.base import Context

BOUNDS, GRID, KEYSTROKE = "step", "widths and batches", "keystroke"
FULL, REUSED = "step in full", "step that remembers its surroundings"
CONTEXT = 512
FLAT = 8192
"""Up to this length in tokens a warm keystroke should take the same time."""
_OPEN = 24
"""Positions of the canvas that follows a keystroke, beside `_PINNED`."""
_PINNED = 32
_PRODUCT = re.compile(r"(linear|matmul|mm)(_fallback|_for_cpu|_pointwise)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKind:
    name: str
    run: Callable[[], Tensor]
    before: Callable[[], object] | None = None
    """Is called before each run, so that each goes the same way."""


def bounds(model: Measured, watch: Stopwatch, gap: int) -> tuple[list[Figure], list[Ratio]]:
    """Times of a step with `gap` open positions, of each kind, and of its matrix products alone."""
    width = gap + _PINNED
    figures: list[Figure] = []
    ratios: list[Ratio] = []
    ids = token_ids(model, room_beside(model, width, CONTEXT))
    for kind in step_kinds(model, ids, gap=gap, pinned=_PINNED):
        step = watch.time(kind.run, before=kind.before)
        with launched(model):
            found = products(kind)
        alone = watch.time(lambda found=found: run_all(found))
        figures.append(Figure(part=BOUNDS, name=kind.name, spread=step, at=width))
        figures.append(Figure(part=BOUNDS, name=f"{kind.name}: matrix products alone", spread=alone, at=width))
        ratios.append(Ratio(name=f"{kind.name} by its matrix products", value=step.median / alone.median, aim="<= 1.6"))
    medians = {figure.name: figure.spread.median for figure in figures}
    if REUSED in medians:
        ratios.append(Ratio(name=f"{FULL} by {REUSED}", value=medians[FULL] / medians[REUSED]))
    return figures, ratios


def grid(
    model: Measured, watch: Stopwatch, widths: Sequence[int], batches: Sequence[int]
) -> tuple[list[Figure], list[Ratio]]:
    """Times of steps over canvases of these widths, all open but a pinned eighth, in batches of these sizes."""
    figures: list[Figure] = []
    for width in widths:
        ids = token_ids(model, room_beside(model, width, CONTEXT))
        for batch in batches:
            for kind in step_kinds(model, ids, gap=width - width // 8, pinned=width // 8, batch=batch):
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


def keystroke(
    model: Measured, watch: Stopwatch, lengths: Sequence[int], longest_cold: int
) -> tuple[list[Figure], list[Ratio]]:
    """Times of a keystroke. Warm: the cache holds all but the typed token. Cold: the cache is empty, for lengths up to
    `longest_cold`. Lengths that a model can't read are replaced by the longest one that it can."""
    figures: list[Figure] = []
    typed = 2 * (watch.repetitions + 1)
    for length in sorted({room_beside(model, typed + _OPEN + _PINNED, length) for length in lengths}):
        figures += _warm(model, watch, length)
        if length <= longest_cold:
            ids = token_ids(model, length, seed=1)
            cold = replace(watch, repetitions=2).time(
                lambda ids=ids: _first_step(model, model.encode(ids)), before=model.forget
            )
            figures.append(Figure(part=KEYSTROKE, name="cold", spread=cold, at=length))
    model.forget()
    warm = {figure.at: figure.spread.median for figure in figures if figure.name == "warm"}
    short, long = min(warm), max(at for at in warm if at <= FLAT)
    ratio = Ratio(name=f"warm keystroke at {long} by {short} tokens", value=warm[long] / warm[short], aim="<= 1.5")
    return figures, [ratio] if long > short else []


def _warm(model: Measured, watch: Stopwatch, length: int) -> list[Figure]:
    model.forget()
    ids = token_ids(model, length)
    context = model.encode(ids)
    typed = cycle(token_ids(model, 1000, seed=2))

    def encode() -> Context:
        ids.append(next(typed))
        return model.encode(ids)

    def fresh() -> None:
        nonlocal context
        context = model.encode(ids)

    encoded = watch.time(encode)
    stepped = watch.time(lambda: _first_step(model, context), before=fresh)
    both = watch.time(lambda: _first_step(model, encode()))
    return [
        Figure(part=KEYSTROKE, name=name, spread=spread, at=length)
        for name, spread in (("warm", both), ("encode", encoded), ("step", stepped))
    ]


def _first_step(model: Measured, context: Context) -> None:
    model.step(rows_of(model, context, gap=_OPEN, pinned=_PINNED, first=True)).whole()


def step_kinds(model: Measured, ids: Sequence[int], *, gap: int, pinned: int, batch: int = 1) -> list[StepKind]:
    """The kinds of steps after the context `ids`: in full, and with remembered surroundings where that computes
    less."""
    rows = rows_of(model, model.encode(ids), gap=gap, pinned=pinned, batch=batch)

    def in_full() -> Tensor:
        with forgetful(model):
            return model.step(rows).whole()

    def remember() -> None:
        """Take a first step over a new context, which leaves behind what the next one remembers."""
        nonlocal rows
        rows = replace(rows, contexts=[model.encode(ids)] * batch)
        model.step(rows)

    full = StepKind(name=FULL, run=in_full)
    reused = StepKind(name=REUSED, run=lambda: model.step(rows).whole(), before=remember)
    remember()
    with launched(model):
        gains = sum(flops(reused.run).values()) < sum(flops(full.run).values())
    return [full, reused] if gains else [full]


def products(kind: StepKind) -> list[Callable[[], object]]:
    """All matrix products of one run: weights, routed experts, attention, head, self-conditioning."""
    if kind.before:
        kind.before()
    with _Products() as recorder:
        kind.run()
    return recorder.found


@torch.inference_mode()
def run_all(found: Sequence[Callable[[], object]]) -> None:
    """Multiply them one after the other, as a step does."""
    for product in found:
        product()


class _Products(TorchDispatchMode):
    """Records every product within the block, with its operands."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Callable[[], object]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name: str = func._schema.name
        if "scaled_dot_product" in name:
            query, keys, values = (part.flatten(0, 1).contiguous() for part in args[:3])
            scores = query @ keys.transpose(1, 2)
            self.found += [partial(torch.bmm, query, keys.transpose(1, 2)), partial(torch.bmm, scores, values)]
        elif _PRODUCT.search(name):
            self.found.append(partial(func, *args, **kwargs))
        return func(*args, **kwargs)


def flops(run: Callable[[], object]) -> dict[str, int]:
    """Floating-point operations of products, by operator."""
    with FlopCounterMode(display=False, custom_mapping=uncounted()) as counter:
        run()
    return {str(name): count for name, count in counter.get_flop_counts()["Global"].items()}


def uncounted() -> dict[Any, Any]:
    """The operators that torch's counter does not know."""
    names = ("_weight_int4pack_mm_for_cpu", "_weight_int8pack_mm")
    found: list[Any] = [getattr(torch.ops.aten, name) for name in names]
    # They are there where torch has oneDNN, and where our own kernel was imported.
    others = (
        getattr(torch.ops.mkldnn, "_linear_pointwise", None),
        getattr(torch.ops.onednn, "qlinear_pointwise", None),
        getattr(torch.ops.dg_lsp, "grouped_product", None),
    )
    return dict.fromkeys([*found, *(each for each in others if each is not None)], _flops_of_product)


def _flops_of_product(states: Sequence[int], *_: Any, out_shape: Sequence[int], **__: Any) -> int:
    return 2 * prod(out_shape) * states[-1]
