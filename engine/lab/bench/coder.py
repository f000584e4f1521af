"""The part "coder": fills of one line by a pretrained coder as it is served, beside llama.cpp with the same file. Both
take turns at each gap: cold, one key later, and with nothing new."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Literal, get_args

from engine.common.request import FillRequest
from engine.fill.pipeline import fill
from engine.lab.bench.timing import Figure, Ratio, Stopwatch, spread
from engine.lab.bench.workload import Forgetful, token_ids
from engine.lab.eval.tasks import EvalTask
from engine.lab.peer.client import NAME, LlamaCpp, Order
from engine.models.base import DraftTree

CODER = "coder"
OURS = "fill"
Moment = Literal["cold", "one key later", "nothing new"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)
_BEFORE, _AFTER = 2_000, 600
"""Most characters around a gap in a long file; an editor sends at least as many."""
_SMALL = 1_000_000_000
_MUST: Mapping[Moment, tuple[str, str]] = {"cold": ("<= 0.6", "<= 0.5"), "one key later": ("<= 0.7", "<= 0.6")}
"""Aims for our time by llama.cpp's: for coders of at least `_SMALL` parameters, and for smaller ones."""
_READ = (256, 1024)
"""Lengths of contexts in tokens."""
_NOTHING = DraftTree(ids=(), parents=())
_PASSES = "<= 6.2"
_COUNTED = range(9, 12)
"""Lengths of the answers whose passes are counted, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoderTask:
    """A cursor in a line that is to go on, and the same gap one key later."""

    name: str
    first: FillRequest
    later: FillRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CoderFill:
    """A fill that was timed."""

    task: str
    way: str
    moment: Moment
    ms: float
    text: str
    tokens: int
    passes: int
    """Forward passes after the context."""


def coder_tasks(tasks: Iterable[EvalTask], count: int) -> list[CoderTask]:
    """The first `count` gaps of one line among `tasks`. The cursor stands after the indentation and before the line
    break, as in an editor; one line is requested, from llama.cpp as well. The key is the first right character."""
    return [*islice((each for each in map(_coder_task, tasks) if each), count)]


def _coder_task(task: EvalTask) -> CoderTask | None:
    line = task.truth.removesuffix("\n")
    indented = len(line) - len(line.lstrip())
    if "\n" in line or len(line) - indented < 2:
        return None
    before, after = near(task.prefix, task.truth[len(line) :] + task.suffix)
    first, later = (
        FillRequest(prefix=before + line[:end], suffix=after, language=task.language, single_line=True)
        for end in (indented, indented + 1)
    )
    return CoderTask(name=task.name, first=first, later=later)


def near(prefix: str, suffix: str) -> tuple[str, str]:
    """Whole lines around a gap, at most `_BEFORE` and `_AFTER` characters."""
    before, after = prefix[-_BEFORE:], suffix[:_AFTER]
    if len(prefix) > _BEFORE and not prefix[:-_BEFORE].endswith("\n"):
        before = before[before.find("\n") + 1 :]
    if len(suffix) > _AFTER:
        after = after[: after.rfind("\n") + 1] or after
    return before, after


def coder_fills(model: Forgetful, tasks: Sequence[CoderTask], peer: LlamaCpp | None) -> Iterator[CoderFill]:
    """Fills of each task in each way; the ways take turns at each moment. llama.cpp first fills all moments with a
    prompt laid out as ours, then with one in the published order, as its cache holds one prompt."""
    ours = partial(_ours, model)
    for number, task in enumerate((tasks[0], *tasks)):
        ways = {OURS: ours} | ({_name("suffix first"): partial(_peer, peer, "suffix first")} if peer else {})
        for several in (ways, {_name("published"): partial(_peer, peer, "published")} if peer else {}):
            for moment in MOMENTS:
                request = task.first if moment == "cold" else task.later
                for way, run in several.items():
                    ms, text, tokens, passes = run(request, moment == "cold")
                    if number:  # the first task runs once more ahead of all, uncounted
                        yield CoderFill(
                            task=task.name, way=way, moment=moment, ms=ms, text=text, tokens=tokens, passes=passes
                        )


_Way = Callable[[FillRequest, bool], tuple[float, str, int, int]]
"""(request, whether the cache is empty) -> milliseconds, text, tokens, passes"""


def _ours(model: Forgetful, request: FillRequest, fresh: bool) -> tuple[float, str, int, int]:
    if fresh:
        model.forget()
    began = time.perf_counter()
    filled = fill(model, request)
    ms = (time.perf_counter() - began) * 1000
    best = filled.candidates[0] if filled.candidates else None
    return ms, best.text if best else "", best.tokens if best else 0, filled.forwards


def _peer(peer: LlamaCpp, order: Order, request: FillRequest, fresh: bool) -> tuple[float, str, int, int]:
    said = peer.fill(
        request.prefix, request.suffix, order=order, max_tokens=request.max_tokens, first_line=True, fresh=fresh
    )
    return said.ms, said.text, said.tokens, said.tokens + said.ended


def _name(order: Order) -> str:
    return f"{NAME}, prompt as ours" if order == "suffix first" else f"{NAME}, published prompt"


def coder_prefill(model: Forgetful, peer: LlamaCpp | None, watch: Stopwatch) -> list[Figure]:
    """Times of a prefill with an empty cache."""
    head = model.causal
    if head is None:
        return []
    figures: list[Figure] = []
    for length in _READ:
        ids = token_ids(model, length)
        spread_by = {
            OURS: watch.time(lambda ids=ids: head.check(head.begin(model.encode(ids)), _NOTHING), before=model.forget)
        }
        if peer:
            spread_by[NAME] = spread([peer.prefill(length) for _ in range(watch.repetitions + 1)][1:])
        figures += [
            Figure(part=CODER, name=f"context read, {way}", spread=each, at=length) for way, each in spread_by.items()
        ]
    return figures


def coder_figures(fills: Sequence[CoderFill], parameters: int) -> tuple[list[Figure], list[Ratio]]:
    """Medians of each way at each moment, and our time by llama.cpp's."""
    ways = list(dict.fromkeys(each.way for each in fills))
    spreads = {
        (way, moment): spread([each.ms for each in fills if (each.way, each.moment) == (way, moment)])
        for way in ways
        for moment in MOMENTS
    }
    figures = [Figure(part=CODER, name=f"{way}, {moment}", spread=each) for (way, moment), each in spreads.items()]
    ratios = [
        Ratio(
            name=f"{OURS} by {way}, {moment}",
            value=spreads[OURS, moment].median / spreads[way, moment].median,
            # Laid out as ours, llama.cpp's prompt ends in blanks or half a word, and it says another text.
            aim=_MUST.get(moment, ("", ""))[parameters < _SMALL] if way == _name("published") else "",
        )
        for way in ways
        if way != OURS
        for moment in MOMENTS
    ]
    return figures, [*ratios, *_counts(fills, ways)]


def _counts(fills: Sequence[CoderFill], ways: Sequence[str]) -> Iterator[Ratio]:
    """Tokens and passes of cold fills."""
    cold = {way: [each for each in fills if (each.way, each.moment) == (way, "cold")] for way in ways}
    for way, own in cold.items():
        yield Ratio(name=f"tokens of an answer, {way}", value=statistics.fmean(each.tokens for each in own))
        yield Ratio(name=f"passes of a fill, {way}", value=statistics.fmean(each.passes for each in own))
    if counted := [each.passes for each in cold[OURS] if each.tokens in _COUNTED]:
        yield Ratio(name="passes of a fill of nine to eleven tokens", value=statistics.fmean(counted), aim=_PASSES)
    texts = {each.task: each.text for each in cold[OURS]}
    for way in ways[1:]:
        same = [each.text.rstrip("\n") == texts[each.task].rstrip("\n") for each in cold[way]]
        yield Ratio(name=f"share of fills that say what {way} says", value=statistics.fmean(same))
