"""The parts "end to end" (one gap from text to candidates, beside other ways to fill it with the same weights) and
"gaps in real code" (with contexts that are encoded already, as while somebody types)."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import torch
from msgspec.structs import replace

from engine.common.percentiles import percentile
from engine.common.request import Filled, FillRequest
from engine.fill.pipeline import fill
from engine.lab.baselines.left_to_right import fill_by_causal_head
from engine.lab.baselines.reference import reference
from engine.lab.bench.timing import Figure, Ratio, Stopwatch, spread
from engine.lab.bench.workload import Measured, request_for

END_TO_END, GAPS = "end to end", "gaps in real code"
_HEADS = ("greedy", "sampled")
_AIMS = {(28, 36): (">= 2", ">= 2"), (8, 12): (">= 1.2", "")}
"""By the least and most tokens of a gap: by what factor autoregression should be slower, with the width given and
without."""


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
                Figure(part=END_TO_END, name=f"{name}, {cache} cache", spread=each, at=width)
                for name, each in taken.items()
            ]
            ratios += [
                Ratio(name=f"{name} by fill, {width} tokens, {cache} cache", value=each.median / taken["fill"].median)
                for name, each in taken.items()
                if name.startswith(_HEADS)
            ]
    return figures, ratios


def by_causal_head(model: Measured) -> dict[str, Callable[[FillRequest], Filled]]:
    """Autoregressive baselines by name, greedy and sampled; none for a model without a causal head."""
    if model.left_to_right is None:
        return {}
    return {name: partial(fill_by_causal_head, model, sampled=name == "sampled") for name in _HEADS}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeGaps:
    source: str
    """Where the code is from."""
    requests: Iterable[FillRequest]
    """A request for each gap, with its true width."""


def gaps(model: Measured, code: CodeGaps, count: int) -> tuple[list[Figure], list[Ratio]]:
    """Times of `count` gaps as an editor requests them, and of as many in each range of widths, filled in several
    ways."""
    requests = iter(code.requests)
    first = [*islice(requests, count)]
    figures, ratios = _as_served(model, first, code.source)
    chosen: dict[tuple[int, int], list[FillRequest]] = {bounds: [] for bounds in _AIMS}
    for request in chain(first, requests):
        for (least, most), of_width in chosen.items():
            if least <= (request.width or 0) <= most and len(of_width) < count:
                of_width.append(request)
        if all(len(of_width) == count for of_width in chosen.values()):
            break
    greedy = by_causal_head(model).get("greedy")
    for (least, most), of_width in chosen.items():
        if greedy is None or not of_width:
            continue
        ends = model.info.end_id is not None
        theirs = "greedy to its end" if ends else "greedy, as many tokens (no end learnt)"
        ways: dict[str, Callable[[FillRequest], object]] = {
            "fill, width told": partial(fill, model),
            "greedy, as many tokens": greedy,
            "fill, width found": lambda request: fill(model, _free(request)),
            theirs: (lambda request, greedy=greedy: greedy(_free(request))) if ends else greedy,
        }
        of_width_too = f"gaps of {least} to {most} tokens in {code.source}"
        taken = _timed(model, of_width, list(ways.values()))
        spreads = {name: spread(times) for name, times in zip(ways, taken, strict=True)}
        figures += [Figure(part=GAPS, name=f"{name}, {of_width_too}", spread=each) for name, each in spreads.items()]
        pairs = zip([*spreads][::2], [*spreads][1::2], _AIMS[least, most], strict=True)
        ratios += [
            Ratio(name=f"{ar} by {ours}, {of_width_too}", value=spreads[ar].median / spreads[ours].median, aim=aim)
            for ours, ar, aim in pairs
        ]
    return figures, ratios


def _as_served(model: Measured, requests: Sequence[FillRequest], source: str) -> tuple[list[Figure], list[Ratio]]:
    with _one_thread():
        (taken,) = _timed(model, requests, [lambda each: fill(model, _free(each))])
    name = f"fill by one thread, any gap in {source}"
    ratios = [
        Ratio(name=f"milliseconds of a {name}, p{percent}", value=percentile(taken, percent) or 0.0, aim=aim)
        for percent, aim in ((50, "<= 120"), (95, "<= 350"))
    ]
    return [Figure(part=GAPS, name=name, spread=spread(taken))], ratios


def _timed(
    model: Measured, requests: Sequence[FillRequest], ways: Sequence[Callable[[FillRequest], object]]
) -> list[list[float]]:
    """Milliseconds of each way, by request. The ways take turns, so that other work on the machine slows all of
    them."""
    taken: list[list[float]] = [[] for _ in ways]
    for request in (requests[0], *requests):
        for way, times in zip(ways, taken, strict=True):
            model.encode(model.prompt(request).context)
            began = time.perf_counter()
            way(request)
            times.append((time.perf_counter() - began) * 1000)
    return [times[1:] for times in taken]


def _free(request: FillRequest) -> FillRequest:
    return replace(request, width=None)


@contextmanager
def _one_thread() -> Generator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
