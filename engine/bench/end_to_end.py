"""(a) One gap, from text to candidates, beside transformers' `generate` and greedy decoding with the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from engine.bench.timing import Figure, Ratio, Stopwatch
from engine.bench.workload import forget_contexts, request_for
from engine.eval.left_to_right import next_tokens
from engine.eval.reference import generate
from engine.infill import fill
from engine.models.diffusion_gemma import DiffusionGemma
from engine.request import Filled

PART = "end to end"


def end_to_end(model: DiffusionGemma, watch: Stopwatch, width: int) -> tuple[list[Figure], list[Ratio]]:
    """A gap of `width` tokens; `generate` does as many steps on its canvas, greedy decoding writes as many tokens."""
    request = request_for(model, width)
    context = list(model.prompt(request).context)
    answers: list[Filled] = []

    def cold() -> None:
        forget_contexts(model)

    def ours() -> None:
        answers.append(fill(model, request))

    figures = {"fill, cold cache": watch.time(ours, before=cold), "fill, warm cache": watch.time(ours)}
    steps = max(answer.steps for answer in answers)
    sampling = replace(model.facts.sampling, max_steps=steps)
    figures[f"generate, {steps} steps"] = watch.time(lambda: generate(model, context, sampling, in_full=True))
    greedy = watch.time(lambda: list(islice(next_tokens(model, context), width)), before=cold)
    figures[f"left to right, {width} tokens"] = greedy
    ours_ms, theirs_ms = (figures[name].median for name in list(figures)[::2])
    return (
        [Figure(part=PART, name=name, spread=spread, at=width) for name, spread in figures.items()],
        list(_ratios(ours_ms, theirs_ms, greedy.median)),
    )


def _ratios(ours_ms: float, theirs_ms: float, greedy_ms: float) -> Iterator[Ratio]:
    yield Ratio(name="generate by fill, same weights and steps, cold cache", value=theirs_ms / ours_ms, aim=">= 4")
    yield Ratio(name="left to right by fill, as many tokens, cold cache", value=greedy_ms / ours_ms)
