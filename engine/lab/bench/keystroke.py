"""The part "keystroke": the time of one more token in contexts of many lengths, and of a canvas's first step after
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

from engine.lab.bench.timing import Figure, Ratio, Stopwatch
from engine.lab.bench.workload import Measured, room_beside, rows_of, token_ids
from engine.models.base import Context

KEYSTROKE = "keystroke"
FLAT = 8192
"""Up to this length in tokens a warm keystroke should take the same time."""
_GAP, _PINNED = 24, 32


def keystroke(
    model: Measured, watch: Stopwatch, lengths: Sequence[int], longest_cold: int
) -> tuple[list[Figure], list[Ratio]]:
    """Times of a keystroke. Warm: the cache holds all but the typed token. Cold: the cache is empty, for lengths up to
    `longest_cold`. Lengths that a model can't read are replaced by the longest one that it can."""
    figures: list[Figure] = []
    typed = 2 * (watch.repetitions + 1)
    for length in sorted({room_beside(model, typed + _GAP + _PINNED, length) for length in lengths}):
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
    model.step(rows_of(model, context, gap=_GAP, pinned=_PINNED, first=True)).whole()
