"""The part "end to end": one gap from text to candidates, beside other ways to fill it with the same weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from engine.common.request import Filled, FillRequest
from engine.fill.pipeline import fill
from engine.lab.baselines.left_to_right import fill_by_causal_head
from engine.lab.baselines.reference import reference
from engine.lab.bench.timing import Figure, Ratio, Stopwatch
from engine.lab.bench.workload import Measured, request_for
from engine.models.base import LeftToRight

END_TO_END = "end to end"


def end_to_end(model: Measured, watch: Stopwatch, widths: Sequence[int]) -> tuple[list[Figure], list[Ratio]]:
    """Times of gaps of `widths` tokens with a cold and a warm cache: by the engine, by the model's causal head, and by
    the model's reference where it has one."""
    figures: list[Figure] = []
    ratios: list[Ratio] = []
    for width in widths:
        request = request_for(model, width)
        answers: list[Filled] = []
        ways: dict[str, Callable[[], object]] = {"fill": lambda to=request, said=answers: said.append(fill(model, to))}
        ways |= {name: partial(way, request) for name, way in by_causal_head(model).items()}
        if model.info.end_id is not None:
            free = replace(request, width=None, max_tokens=width)
            ways |= {f"{name} to its end": partial(way, free) for name, way in by_causal_head(model).items()}
        for cache, before in (("cold", model.forget), ("warm", None)):
            taken = {name: watch.time(way, before=before) for name, way in ways.items()}
            most = max(answers, key=lambda answer: answer.steps)
            if cache == "cold" and (theirs := reference(model, request, most)) is not None:
                taken[theirs.name] = watch.time(theirs.run, before=model.forget)
                name = f"{theirs.name} by fill, {width} tokens, {theirs.conditions}, cold cache"
                ratios.append(Ratio(name=name, value=taken[theirs.name].median / taken["fill"].median, aim=theirs.aim))
            figures += [
                Figure(part=END_TO_END, name=f"{name}, {cache} cache", spread=spread, at=width)
                for name, spread in taken.items()
            ]
            ratios += [
                Ratio(name=f"{name} by fill, {width} tokens, {cache} cache", value=spread.median / taken["fill"].median)
                for name, spread in taken.items()
                if name.startswith(_HEADS)
            ]
    return figures, ratios


_HEADS = ("greedy", "sampled")


def by_causal_head(model: Measured) -> dict[str, Callable[[FillRequest], Filled]]:
    """Autoregressive baselines by name, greedy and sampled; none for a model without a causal head."""
    if not isinstance(model, LeftToRight):
        return {}
    return {name: partial(fill_by_causal_head, model, sampled=name == "sampled") for name in _HEADS}
