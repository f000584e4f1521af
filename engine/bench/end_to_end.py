"""(a) One gap, from text to candidates, beside what others do with the same weights."""

from __future__ import annotations

from itertools import islice

from engine.baselines.left_to_right import LeftToRight
from engine.baselines.reference import reference
from engine.bench.timing import Figure, Ratio, Stopwatch
from engine.bench.workload import Measured, request_for
from engine.core.request import Filled
from engine.infill.pipeline import fill

END_TO_END = "end to end"


def end_to_end(model: Measured, watch: Stopwatch, width: int) -> tuple[list[Figure], list[Ratio]]:
    """A gap of `width` tokens; the model's reference fills the same gap, greedy decoding writes as many tokens."""
    request = request_for(model, width)
    answers: list[Filled] = []

    def ours() -> None:
        answers.append(fill(model, request))

    cold = watch.time(ours, before=model.forget)
    spreads = {"fill, cold cache": cold, "fill, warm cache": watch.time(ours)}
    theirs = reference(model, request, max(answers, key=lambda answer: answer.steps))
    spread = spreads[theirs.name] = watch.time(theirs.run, before=model.forget)
    name = f"{theirs.name} by fill, {theirs.told}, cold cache"
    ratios = [Ratio(name=name, value=spread.median / cold.median, aim=theirs.aim)]
    if isinstance(model, LeftToRight):
        context = model.prompt(request).context
        greedy = watch.time(lambda: list(islice(model.next_tokens(context), width)), before=model.forget)
        spreads[f"left to right, {width} tokens"] = greedy
        name = "left to right by fill, as many tokens, cold cache"
        ratios.append(Ratio(name=name, value=greedy.median / cold.median))
    return [Figure(part=END_TO_END, name=name, spread=spread, at=width) for name, spread in spreads.items()], ratios
