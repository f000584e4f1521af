"""The next edit: where else in a file the newest edit belongs, and whether it does.

Places are found by text (engine.edit.replays), checked for their syntax, and read by the model, the new line against
the old one in its surroundings. Nothing is shown unless more speaks for it than against: staying quiet is right most of
the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator

from msgspec import structs

from engine.core.request import Candidate, Filled, FillRequest, Timings
from engine.decoding.deadline import Deadline
from engine.decoding.executor import Filling, Step, Work
from engine.edit.replays import Replay, replays
from engine.infill.gap import Gap
from engine.infill.ranking import scored
from engine.infill.validation import validated_fills
from engine.models.base import Model
from engine.models.logits import Logits
from engine.syntax.languages import language_of
from engine.text.newlines import with_line_feeds

LIKELY = 0.75
"""Log-odds from which on a place is worth showing: fitted, as the next, on development packages."""
_READ, _NATS = 0.15, 10.0
"""Log-odds for each nat by which the new line reads easier than the old one, and how many nats count at the most."""
_TRIED = 2
"""Places that the model reads, the likeliest first."""


def next_edit(model: Model, request: FillRequest, clock: Callable[[], float] = time.perf_counter) -> Filling:
    """One candidate, which `replaces` a span of `prefix + suffix`; or none."""
    began = clock()
    deadline = Deadline(request.deadline_ms, began, clock)
    text = request.prefix + request.suffix
    # What another file's edit is to this one was never measured: names are seldom the same thing there.
    here = [(each, each.start) for each in request.edits if each.start is not None]
    mine = [(start, start + len(each.new)) for each, start in here]
    found = replays(text, here[-1][0].old, here[-1][0].new, mine, len(request.prefix)) if here else []
    candidates: list[Candidate] = []
    for place in found[:_TRIED]:
        if place.likely + _READ * _NATS < LIKELY or deadline.passed():
            break
        easier = yield from _easier(model, request, text, place, deadline)
        likely = place.likely + _READ * max(-_NATS, min(easier, _NATS))
        yield None
        if likely >= LIKELY and (yield from _parses(request, text, place, deadline)):
            candidates.append(_candidate(model, place, likely))
            break
    return Filled(
        model=model.info.name,
        device=model.info.device,
        candidates=tuple(candidates),
        width=candidates[0].tokens if candidates else 0,
        steps=0,
        forwards=0,
        ms=Timings(total=(clock() - began) * 1000),
    )


def _candidate(model: Model, place: Replay, likely: float) -> Candidate:
    return Candidate(
        text=place.new,
        tokens=len(model.tokenize(place.new)),
        confidence=1 / (1 + math.exp(-likely)),
        score=likely,
        syntax="ok",
        replaces=(place.start, place.end),
    )


def _easier(
    model: Model, request: FillRequest, text: str, place: Replay, deadline: Deadline
) -> Generator[Step, Logits, float]:
    """Nats by which the lines of a place read easier as they would be than as they are."""
    start = text.rfind("\n", 0, place.start) + 1
    stop = text.find("\n", place.end)
    end = stop if stop >= 0 else len(text)
    asked = structs.replace(request, task="fill", prefix=text[:start], suffix=text[end:])
    gap = Gap.of(model, asked, deadline)
    versions = (place.new, text[place.start : place.end])
    lines = [text[start : place.start] + version + text[place.end : end] for version in versions]
    ids = [model.tokenize(gap.prompt.head + with_line_feeds(line)) for line in lines]
    after, before = yield from scored(gap, ids)
    return sum(after) - sum(before)


def _parses(request: FillRequest, text: str, place: Replay, deadline: Deadline) -> Work[bool]:
    """Whether it adds no syntax problem, as far as that can be told."""
    language = language_of(request.language)
    if language is None:
        return True
    old = text[place.start : place.end]
    asked = structs.replace(request, task="rewrite", prefix=text[: place.start], old=old, suffix=text[place.end :])
    (found,) = yield from validated_fills(asked, language, [with_line_feeds(place.new)], deadline)
    return found is not None and (found.verdict is None or found.verdict.is_clean)
