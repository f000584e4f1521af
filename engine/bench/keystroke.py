"""(c) What a keystroke costs in contexts of many lengths: one token more to encode, and the first step of a canvas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from engine.bench.timing import Figure, Ratio, Stopwatch
from engine.bench.workload import forget_contexts, rows_of, token_ids
from engine.models.diffusion_gemma import DiffusionGemma

PART = "keystroke"
FLAT = (256, 8192)
"""Between these lengths a warm keystroke should cost the same."""
_GAP, _PINNED = 24, 32


def keystroke(
    model: DiffusionGemma, watch: Stopwatch, lengths: Sequence[int], longest_cold: int
) -> tuple[list[Figure], list[Ratio]]:
    """Warm: all but the typed token is cached. Cold: nothing is, for lengths up to `longest_cold`."""
    figures: list[Figure] = []
    for length in lengths:
        figures += _warm(model, watch, length)
        if length <= longest_cold:
            figures.append(_cold(model, replace(watch, repetitions=2), length))
    forget_contexts(model)
    warm = {figure.at: figure.spread.median for figure in figures if figure.name == "warm"}
    short, long = min(warm), max(at for at in warm if at <= FLAT[1])
    return figures, [
        Ratio(name=f"warm keystroke at {long} by {short} tokens", value=warm[long] / warm[short], aim="~ 1")
    ]


def _warm(model: DiffusionGemma, watch: Stopwatch, length: int) -> list[Figure]:
    forget_contexts(model)
    ids = token_ids(model, length)
    model.encode(ids)
    typed = count(16)

    def encode() -> None:
        ids.append(16 + next(typed) % 1000)
        model.encode(ids)

    def step() -> None:
        model.step(rows_of(model, context, gap=_GAP, pinned=_PINNED, first=True))

    encoded = watch.time(encode)
    context = model.encode(ids)
    stepped = watch.time(step)

    def both() -> None:
        nonlocal context
        ids.append(16 + next(typed) % 1000)
        context = model.encode(ids)
        step()

    return [
        Figure(part=PART, name=name, spread=spread, at=length)
        for name, spread in (("warm", watch.time(both)), ("encode", encoded), ("step", stepped))
    ]


def _cold(model: DiffusionGemma, watch: Stopwatch, length: int) -> Figure:
    ids = token_ids(model, length, seed=1)
    spread = watch.time(lambda: model.encode(ids), before=lambda: forget_contexts(model))
    return Figure(part=PART, name="cold", spread=spread, at=length)
